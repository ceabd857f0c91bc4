package upstream_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// testdata/snapshot.db.gz is what etcdctl 3.6 has saved of an etcd 3.6 on which a kube-apiserver
// v1.33.13 ran, with testdata/encryption.yaml and --runtime-config=api/all=true.
// testdata/objects.json.gz is what that kube-apiserver answered at the same time: the lists of all
// resources in all versions by path, without resourceVersions.

const snapshotRevision = 410

var secrets = schema.GroupResource{Resource: "secrets"}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	must(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, err)
	return b
}

// snapshotFile returns a file with content, the recorded snapshot if that is nil.
func snapshotFile(t testing.TB, content []byte) string {
	t.Helper()
	if content == nil {
		content = unpacked(t, "snapshot.db.gz")
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	must(t, os.WriteFile(file, content, 0o600))
	return file
}

func recorded(t testing.TB) (lists map[string][]map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(unpacked(t, "objects.json.gz"), &lists))
	return lists
}

func openSnapshot(t testing.TB) upstream.Source {
	t.Helper()
	s, err := upstream.OpenSnapshot(t.Context(), snapshotFile(t, nil))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func providers(t testing.TB, file string) *encryption.Providers {
	t.Helper()
	p, err := encryption.Open(encryption.Options{ConfigFile: file}, "test")
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

func layout(t testing.TB) *upstream.Layout {
	t.Helper()
	l, err := upstream.NewLayout(upstream.DefaultPrefix)
	must(t, err)
	return l
}

func openLog(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	must(t, err)
	t.Cleanup(func() { log.Close() })
	return log
}

// take imports a source into a log.
func take(t testing.TB, from upstream.Source, to changelog.Log, p *encryption.Providers) upstream.Report {
	t.Helper()
	im := &upstream.Import{From: from, Layout: layout(t), Encryption: p}
	must(t, im.Survey(t.Context()))
	report, err := im.Run(t.Context(), to)
	must(t, err)
	return report
}

// plainRows returns all values of a log by key, decrypted, and the keys of those that are encrypted.
func plainRows(t testing.TB, log changelog.Log, p *encryption.Providers) (values map[string]string, sealed []string) {
	t.Helper()
	head, err := log.Head(t.Context())
	must(t, err)
	rows, err := log.State(t.Context(), "", changelog.End, head.Revision, 100_000)
	must(t, err)
	values = map[string]string{}
	for _, r := range rows {
		plain, _, err := p.FromStorage(t.Context(), r.Key, r.Value)
		must(t, err)
		if values[r.Key] = string(plain); string(plain) != string(r.Value) {
			sealed = append(sealed, r.Key)
		}
	}
	return values, sealed
}

// sealedResource is the resource of a key that testdata/encryption.yaml is about.
func sealedResource(key string) schema.GroupResource {
	parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
	if group := parts[0]; strings.Contains(group, ".") {
		return schema.GroupResource{Group: group, Resource: parts[1]}
	}
	return schema.GroupResource{Resource: parts[0]}
}
