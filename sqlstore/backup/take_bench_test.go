package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	. "github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

// podLike is JSON of about 2 KiB, whose words repeat as those of pods do.
func podLike(r *rand.Rand, name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"%08x-%04x-4%03x-%04x-%012x","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web-%d","pod-template-hash":"%x"}},"spec":{"containers":[`,
		name, r.Uint32(), r.Uint32N(1<<16), r.Uint32N(1<<12), r.Uint32N(1<<16), r.Uint64N(1<<48), r.IntN(50), r.Uint32())
	for i := range 4 {
		fmt.Fprintf(&b, `{"name":"c%d","image":"registry.example.com/team/app-%d@sha256:%016x%016x","ports":[{"containerPort":%d,"protocol":"TCP"}],"env":[{"name":"TOKEN","value":"%x"},{"name":"MODE","value":"production"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"},`,
			i, r.IntN(99), r.Uint64(), r.Uint64(), r.IntN(65536), r.Uint64())
	}
	fmt.Fprintf(&b, `{"name":"last"}],"restartPolicy":"Always","nodeName":"node-%d"},"status":{"phase":"Running","podIP":"10.%d.%d.%d"}}`, r.IntN(100), r.IntN(256), r.IntN(256), r.IntN(256))
	return b.Bytes()
}

// podLog makes a log with so many bytes of such objects.
func podLog(b *testing.B, size int) (dsn string, bytes int64) {
	b.Helper()
	dsn = "sqlite://" + filepath.Join(b.TempDir(), "plinth.db") + "?durability=off"
	log, err := dialects.Open(b.Context(), dsn, dialects.Options{})
	must(b, err)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; int(bytes) < size; {
		var batch []changelog.Change
		for range 500 {
			name := fmt.Sprintf("web-%07d", i)
			batch = append(batch, changelog.Change{Key: "/registry/core/pods/default/" + name, Value: podLike(r, name)})
			bytes += int64(len(batch[len(batch)-1].Value))
			i++
		}
		_, err := log.Append(b.Context(), batch)
		must(b, err)
	}
	must(b, log.Close())
	return dsn, bytes
}

// BenchmarkTake says how many bytes of JSON a backup takes in a second.
func BenchmarkTake(b *testing.B) {
	dsn, size := podLog(b, 200<<20)
	for _, beside := range []bool{true, false} { // a process that has the database, or in it
		for _, history := range []bool{false, true} {
			b.Run(fmt.Sprintf("beside=%v/history=%v", beside, history), func(b *testing.B) {
				source := sourceOf(b, dsn, beside)
				defer source.Close()
				b.SetBytes(size)
				for b.Loop() {
					t, err := Take(b.Context(), source, io.Discard, Options{History: history})
					must(b, err)
					b.ReportMetric(float64(t.Bytes)/float64(t.Size), "times-smaller")
				}
			})
		}
	}
}

func sourceOf(b *testing.B, dsn string, beside bool) changelog.Source {
	b.Helper()
	if !beside {
		return openLog(b, dsn)
	}
	source, err := dialects.Peek(b.Context(), dsn, dialects.Options{})
	must(b, err)
	return source
}

// BenchmarkRestore does so for a restore into SQLite, and BenchmarkVerify for both ways to verify.
func BenchmarkRestore(b *testing.B) {
	dsn, size := podLog(b, 200<<20)
	file := taken(b, dsn)
	b.SetBytes(size)
	for b.Loop() {
		target := openLog(b, "sqlite://"+filepath.Join(b.TempDir(), "plinth.db"))
		_, err := Restore(b.Context(), target, bytes.NewReader(file), nil)
		must(b, err)
		must(b, target.Close())
	}
}

func BenchmarkVerify(b *testing.B) {
	dsn, size := podLog(b, 200<<20)
	file := taken(b, dsn)
	b.Run("file", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			_, r, err := Verify(b.Context(), bytes.NewReader(file), scrub.Options{})
			if err != nil || r.Problems > 0 {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("log", func(b *testing.B) {
		b.SetBytes(size)
		source, err := dialects.Peek(b.Context(), dsn, dialects.Options{})
		must(b, err)
		defer source.Close()
		for b.Loop() {
			r, err := scrub.Log(b.Context(), source, scrub.Options{})
			if err != nil || r.Problems > 0 {
				b.Fatal(r, err)
			}
		}
	})
}

func taken(b *testing.B, dsn string) []byte {
	b.Helper()
	source, err := dialects.Peek(b.Context(), dsn, dialects.Options{})
	must(b, err)
	defer source.Close()
	var file bytes.Buffer
	_, err = Take(b.Context(), source, &file, Options{})
	must(b, err)
	return file.Bytes()
}
