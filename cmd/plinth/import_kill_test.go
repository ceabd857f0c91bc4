package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// firstImported is how many objects the first import has that is killed.
const firstImported = 4000

// TestImportKilled kills imports at all moments. Each leaves a database that is not served, and the next
// import begins anew with it, until one comes to its end. The last ones have fewer objects than those before.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	const fewer = 3500
	large, small := snapshotOf(t, firstImported), snapshotOf(t, fewer)
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			to := d.Fresh(t)
			for !killedInMiddle(t, large, to) {
				to = d.Fresh(t)
			}
			for after := 300 * time.Millisecond; !importsAll(t, small, to, after); after += after / 2 {
				expectRefused(t, to)
			}
			expectImported(t, to, fewer)
		})
	}
}

// killedInMiddle kills an import when there are the first objects; false if it was faster.
func killedInMiddle(t *testing.T, from, to string) bool {
	t.Helper()
	cmd, out := plinth(t, nil, "import", "--etcd="+from, "--dsn="+to)
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !hasObjects(t, to) {
		select {
		case err := <-ended:
			if err == nil {
				return false
			}
			if strings.Contains(out.String(), "another plinth is running on it") { // this test was, for a moment
				return killedInMiddle(t, from, to)
			}
			t.Fatalf("%v: %s", err, out)
		case <-time.After(time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	if isWhole(t, to) {
		if n := len(storedEntries(t, to)); n < firstImported {
			t.Fatalf("a killed import has left %d objects without a mark", n)
		}
		return false
	}
	expectRefused(t, to)
	return true
}

// hasObjects tells whether there is a database with an object. That its revision was raised says nothing:
// an import does so before it marks the database, which is then still an empty one.
func hasObjects(t *testing.T, dsn string) bool {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Beside: true})
	if err != nil {
		return false
	}
	defer log.Close()
	head, err := log.Head(t.Context())
	if err != nil || head.Revision == 0 {
		return false
	}
	rows, err := log.State(t.Context(), "/", "0", head.Revision, 1)
	return err == nil && len(rows) > 0
}

// importsAll imports, and kills that after a while; true if it came to its end.
func importsAll(t *testing.T, from, to string, after time.Duration) bool {
	t.Helper()
	cmd, out := plinth(t, nil, "import", "--etcd="+from, "--dsn="+to)
	must(t, cmd.Start())
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	kill.Stop()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, out)
	}
	return err == nil || isWhole(t, to)
}

// expectRefused expects that no plinth serves what was imported in part.
func expectRefused(t *testing.T, dsn string) {
	t.Helper()
	code, out := runPlinth(t, "serve", "--listen=127.0.0.1:0", "--dsn="+dsn, "--data-dir="+t.TempDir())
	if code != 2 || !strings.Contains(out, "copy or import again, which goes on with it") {
		t.Errorf("serve: exit code %d: %s", code, out)
	}
}

// isWhole tells whether a database has no mark of an import that has not come to its end.
func isWhole(t *testing.T, dsn string) bool {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	must(t, err)
	half := changelog.HalfCopied(t.Context(), log)
	must(t, log.Close())
	return half == nil
}

func expectImported(t *testing.T, dsn string, objects int) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for i := range objects {
		want[numberedKey(i)] = numberedObject(i)
	}
	for _, row := range storedEntries(t, dsn) {
		got[row.Key] = string(row.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("imported:\n%.2000s", diff)
	}
}

func numberedKey(i int) string { return fmt.Sprintf("/registry/core/configmaps/default/c%05d", i) }

func numberedObject(i int) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%05d","namespace":"default"}}`, i)
}

// snapshotOf returns a snapshot of an etcd with n objects.
func snapshotOf(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	from, file := "sqlite://"+filepath.Join(dir, "plinth.db"), filepath.Join(dir, "snapshot.db")
	log := openedLog(t, from)
	for done := 0; done < n; {
		var batch []changelog.Change
		for ; len(batch) < 1000 && done < n; done++ {
			batch = append(batch, changelog.Change{Key: numberedKey(done), Value: []byte(numberedObject(done))})
		}
		_, err := log.Append(t.Context(), batch)
		must(t, err)
	}
	must(t, log.Close())
	if code, out := runPlinth(t, "export", "--dsn="+from, "--etcd="+file); code != 0 {
		t.Fatalf("export: exit code %d: %s", code, out)
	}
	return file
}
