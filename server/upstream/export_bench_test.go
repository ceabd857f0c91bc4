package upstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// BenchmarkExport exports a log with 100,000 objects of 1.3 KB to a file and to an etcd.
func BenchmarkExport(b *testing.B) {
	const objects = 100_000
	log := openLog(b, logtest.SQLite(b))
	data := strings.Repeat("x", 1000)
	for n := 0; n < objects; n += 1000 {
		var batch []changelog.Change
		for i := range 1000 {
			name := fmt.Sprintf("c%06d", (n+i)*7919%objects) // revisions are not in the order of keys
			batch = append(batch, changelog.Change{
				Key: "/registry/core/configmaps/default/" + name,
				Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"5d6e8c62-1a4b-4c4e-8c3f-0a8c5f5b0c11","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"kubectl-create","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}}]},"data":{"a":%q}}`,
					name, data),
			})
		}
		_, err := log.Append(b.Context(), batch)
		must(b, err)
	}
	p := providers(b, "")
	run := func(b *testing.B, to upstream.Target) {
		if report := give(b, log, to, p); report.Objects != objects {
			b.Fatalf("%d objects", report.Objects)
		}
	}
	b.Run("file", func(b *testing.B) {
		for b.Loop() {
			file := filepath.Join(b.TempDir(), "export.db")
			to, err := upstream.CreateSnapshot(file)
			must(b, err)
			run(b, to)
			info, err := os.Stat(file)
			must(b, err)
			b.ReportMetric(float64(info.Size())/1e6, "MB")
		}
		b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
	})
	b.Run("etcd", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			address := etcdtest.StartAt(b)
			b.StartTimer()
			run(b, toEtcd(b, address))
		}
		b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
	})
}
