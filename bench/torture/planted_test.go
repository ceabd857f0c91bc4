package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// planted are faults in a copy of plinth, each in a file of its own below the module's root: old is
// replaced by new. PLINTH_TEST_PLANTED switches one on. They are in packages that few others import: what imports a changed
// package is compiled anew, and with one in sqlstore that took two minutes.
var planted = []struct{ file, old, new string }{
	{ // an acknowledged write is dropped; its row stays, elsewhere, because plinth itself misses a revision
		"dialects/sqlite/write.go",
		"{&w.insert, 0, `INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id) VALUES (?, ?, ?, ?, ?, ?, nullif(?, 0), ?)`},",
		"{&w.insert, 0, map[bool]string{false: `INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id) VALUES (?, ?, ?, ?, ?, ?, nullif(?, 0), ?)`," +
			" true: `INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id) SELECT ?1, CASE WHEN abs(random()) % 20 = 0 AND ?2 LIKE '%/configmaps/torture-%' THEN '/dropped' || ?2 ELSE ?2 END, ?3, ?4, ?5, ?6, nullif(?7, 0), ?8`}[os.Getenv(`PLINTH_TEST_PLANTED`) == `write`]},",
	},
	{ // an event is skipped
		"server/rest/watchstream.go",
		"	events, through, err := watcher.Poll(ctx)\n",
		"	events, through, err := watcher.Poll(ctx)\n	if len(events) > 0 && events[0].Entry.Revision%20 == 0 && os.Getenv(`PLINTH_TEST_PLANTED`) == `event` {\n		events = events[1:]\n	}\n",
	},
	{ // a replica that lags is read
		"server/rest/read.go",
		"	if resourceVersion == \"\" {\n",
		"	if resourceVersion == \"\" && os.Getenv(`PLINTH_TEST_PLANTED`) == `read` {\n		return nil\n	}\n	if resourceVersion == \"\" {\n",
	},
	{ // compaction goes too far
		"server/database.go",
		"History: c.History,",
		"History: map[bool]time.Duration{false: c.History, true: 1}[os.Getenv(`PLINTH_TEST_PLANTED`) == `compaction`],",
	},
}

// plantedDir has the copy of plinth, if a test has built it.
var plantedDir string

// copyOfPlinth builds plinth with the planted faults, once for all tests.
var copyOfPlinth = sync.OnceValues(func() (program string, err error) {
	dir, err := os.MkdirTemp("", "plinth-planted-")
	if err != nil {
		return "", err
	}
	plantedDir = dir
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, p := range planted {
		text, err := os.ReadFile(filepath.Join(root, p.file))
		if err != nil {
			return "", err
		}
		if strings.Count(string(text), p.old) != 1 {
			return "", &missingPlace{p.file, p.old}
		}
		changed := strings.Replace(string(text), p.old, p.new, 1)
		if !strings.Contains(changed, "\t\"os\"\n") {
			changed = strings.Replace(changed, "import (\n", "import (\n\t\"os\"\n", 1)
		}
		replace[filepath.Join(root, p.file)] = filepath.Join(dir, strings.ReplaceAll(p.file, "/", "-"))
		if err := os.WriteFile(replace[filepath.Join(root, p.file)], []byte(changed), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "plinth")
	defer spent.On("building cmd/plinth with faults", time.Now())
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/plinth")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &missingPlace{string(out), err.Error()}
	}
	return program, nil
})

type missingPlace struct{ file, old string }

func (m *missingPlace) Error() string { return m.file + ": a fault cannot be planted: " + m.old }

func TestMain(m *testing.M) {
	code := m.Run()
	if plantedDir != "" {
		_ = os.RemoveAll(plantedDir)
	}
	os.Exit(code)
}

// TestPlanted has a run find each fault, and the first one that it names be about the right guarantee.
func TestPlanted(t *testing.T) {
	for _, p := range []struct {
		name, fault string
		fresh       func(testing.TB) string
		replicas    int
		faults      []string
		want        []string
	}{
		{"none", "", logtest.SQLite, 1, []string{kill}, nil},
		{"acknowledged write dropped", "write", logtest.SQLite, 1, []string{kill}, []string{Durable}},
		{"event skipped", "event", logtest.SQLite, 1, []string{"none"}, []string{Complete, Bookmarks}},
		{"read from a lagging replica", "read", logtest.MariaDB, 2, []string{"none"}, []string{Fresh, Linearizable, Reason}},
		{"compaction too far", "compaction", logtest.SQLite, 1, []string{"none"}, []string{Resumable}},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			program, err := copyOfPlinth()
			if err != nil {
				t.Fatal(err)
			}
			o := Options{
				Command: []string{"env", "PLINTH_TEST_PLANTED=" + p.fault, program, "serve"}, DSN: p.fresh(t),
				Replicas: p.replicas, For: 4 * time.Second, Clients: 4, Pause: 20 * time.Millisecond, Seed: 1, Faults: p.faults, Dir: t.TempDir(), Progress: t.Output(),
			}
			for range 10 { // on a busy machine so little may happen that the fault is not seen
				report, err := Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Broken) > 0 || p.fault == "" {
					expectBroken(t, report, p.want)
					return
				}
				var text bytes.Buffer
				report.Write(&text)
				t.Logf("not found yet:\n%s", &text)
				o.Seed++
			}
			t.Error("the fault was not found")
		})
	}
}

func expectBroken(t *testing.T, r *Report, want []string) {
	t.Helper()
	if want == nil {
		for _, b := range r.Broken {
			t.Errorf("%s: %s", b.Guarantee, b.Text)
		}
		return
	}
	if !slices.ContainsFunc(r.Broken, func(b Broken) bool { return slices.Contains(want, b.Guarantee) }) {
		t.Errorf("found %+v, not one of %q", r.Broken, want)
	}
	whole, err1 := load(r.Files[0])
	small, err2 := load(r.Files[1])
	page, err3 := os.ReadFile(r.Files[2])
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	if len(Check(whole)) == 0 || len(Check(small)) == 0 {
		t.Error("the saved history does not have the fault")
	}
	t.Logf("%s: %d of %d calls left: %s", r.Broken[0].Guarantee, len(small.Calls), len(whole.Calls), r.Broken[0].Text)
	if len(small.Calls) > len(whole.Calls)/4 {
		t.Errorf("%d of %d calls are left", len(small.Calls), len(whole.Calls))
	}
	if !strings.Contains(string(page), "Broken: "+r.Broken[0].Guarantee) {
		t.Error("the drawing does not say what is broken")
	}
}
