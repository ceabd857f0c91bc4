package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestVerifyVersions: objects that an older release has stored in a version that is gone are named, a line each, in a
// database, in a backup of it, and in what is restored from that. They are all that is found.
func TestVerifyVersions(t *testing.T) {
	t.Parallel()
	const in = " is stored in storagemigration.k8s.io/v1alpha1, which Kubernetes 1.37 does not know: it stays, and cannot be served; write it again in another version, or delete it (docs/releases.md)\n"
	want := regexp.MustCompile(`^revision \d+ of /registry/storagemigration.k8s.io/storageversionmigrations/test-migration: StorageVersionMigration test-migration` + regexp.QuoteMeta(in) +
		`revision \d+ of /registry/storagemigration.k8s.io/storageversionmigrations/done: StorageVersionMigration done` + regexp.QuoteMeta(in) +
		`plinth: (cluster|backup of cluster) .*: 2 problems in \d+ rows\n$`)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		packed, err := os.ReadFile(filepath.Join(repository, "server", "testdata", "v1.33", d.Name+".sql.gz"))
		must(t, err)
		z, err := gzip.NewReader(bytes.NewReader(packed))
		must(t, err)
		dump, err := io.ReadAll(z)
		must(t, err)
		old, restored, file := d.Fresh(t), d.Fresh(t), filepath.Join(t.TempDir(), "old.plinth")
		logtest.Exec(t, old, string(dump))
		log, err := dialects.Open(t.Context(), old, dialects.Options{}) // which brings the schema up to date
		must(t, err)
		must(t, log.Close())
		for _, args := range []string{"backup --dsn " + old + " " + file, "restore " + file + " --dsn " + restored} {
			if code, out := runPlinth(t, strings.Fields(args)...); code != 0 {
				t.Fatalf("%s: exit code %d: %s", args, code, out)
			}
		}
		for _, what := range []string{old, file, restored} {
			cmd, out := plinth(t, nil, "verify", what)
			cmd.Stdout = cmd.Stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !want.MatchString(out.String()) {
				t.Errorf("verify %s: exit code %d: %s", what, code, out)
			}
		}
	})
}
