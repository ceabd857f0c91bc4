package backups

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// touch makes files in a folder, last written to some time ago.
func touch(t *testing.T, dir string, ago time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		path, at := filepath.Join(dir, name), time.Now().Add(-ago)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// nameAt is the name of a file of a cluster that was made some time ago.
func nameAt(prefix string, ago time.Duration) string {
	return prefix + time.Now().Add(-ago).UTC().Format(stamp) + "-r7" + extension
}

// A server that cannot agree with others on whose turn it is sees by the folder that one of them has made a file. What counts is
// when it was taken, however long writing it took, and however old the copy is.
func TestMade(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 1)
	mine, other := b.prefix(), "plinth-11111111-2222-3333-4444-555555555555-"
	for _, c := range []struct {
		what, file string
		ago        time.Duration // last written to
		want       bool
	}{
		{"a new file", nameAt(mine, time.Minute), 0, true},
		{"a file that was taken within the interval", nameAt(mine, 59*time.Minute), 2 * time.Hour, true},
		{"an old file that was copied", nameAt(mine, 61*time.Minute), 0, false},
		{"a file of a server whose clock is ahead", nameAt(mine, -time.Minute), 0, true},
		{"a file from before the clock was set back", nameAt(mine, -24*time.Hour), 0, false},
		{"a file of another cluster", nameAt(other, time.Minute), 0, false},
		{"a file of that extension", mine + "mine" + extension, 0, false},
		{"a file that somebody is writing", tempPrefix + "123", 10 * time.Second, true},
		{"a file that somebody has left", tempPrefix + "123", 10 * time.Minute, false},
	} {
		dir := t.TempDir()
		touch(t, dir, c.ago, c.file)
		if got := b.Made(Interval{Every: time.Hour, Dir: dir}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if b.Made(Interval{Every: time.Hour, Dir: filepath.Join(t.TempDir(), "none")}) {
		t.Error("there is no folder, and a file was made")
	}
	dir := t.TempDir()
	if err := b.WriteTo(t.Context(), Interval{Every: time.Hour, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if !b.Made(Interval{Every: time.Hour, Dir: dir}) {
		t.Error("a file that was made does not count")
	}
}

// One file that cannot be removed does not keep the others.
func TestTidy(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 1)
	dir := t.TempDir()
	stuck := nameAt(b.prefix(), 9*time.Hour)
	if err := os.MkdirAll(filepath.Join(dir, stuck, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := nameAt(b.prefix(), time.Hour)
	touch(t, dir, 2*time.Hour, nameAt(b.prefix(), 3*time.Hour), nameAt(b.prefix(), 2*time.Hour), kept, tempPrefix+"left", "mine"+extension)
	if err := b.tidy(Interval{Dir: dir, Keep: 1}); err == nil {
		t.Error("nothing tells of the one that could not be removed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"mine" + extension, stuck, kept}; !slices.Equal(names, want) {
		t.Errorf("left: %v, want %v", names, want)
	}
}

// Servers that tidy a folder at once do not get in each other's way.
func TestTidyTogether(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 1)
	dir := t.TempDir()
	for i := range 400 {
		touch(t, dir, 0, nameAt(b.prefix(), time.Duration(i)*time.Minute))
	}
	done := make(chan error)
	for range 4 {
		go func() { done <- b.tidy(Interval{Dir: dir, Keep: 1}) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
