package logtest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
)

// TestTornWAL damages the write-ahead log of a process that was killed, as a disk does that lies about
// what it has synced. SQLite takes the commits before the damage and none after it: the log is that of an
// earlier moment, whole, and goes on.
func TestTornWAL(t *testing.T) {
	dsn := SQLite(t)
	acknowledged := killWriter(t, dsn)
	path := strings.TrimPrefix(dsn, "sqlite://")
	wal, err := os.ReadFile(path + "-wal")
	if err != nil || len(wal) < 10_000 {
		t.Fatalf("a write-ahead log of %d bytes: %v", len(wal), err)
	}
	random := rand.New(rand.NewPCG(16, 16))
	lost := 0
	for i := range 24 {
		at := random.IntN(len(wal))
		torn := bytes.Clone(wal)
		switch i % 3 {
		case 0:
			torn = torn[:at]
		case 1:
			torn[at] ^= 1 << random.IntN(8)
		case 2: // a sector that was never written
			clear(torn[at:min(at+512, len(torn))])
		}
		head := openTorn(t, path, torn)
		if head > acknowledged+5 {
			t.Errorf("damage at %d: head %d after %d was acknowledged", at, head, acknowledged)
		}
		if head < acknowledged {
			lost++
		}
	}
	if lost == 0 {
		t.Error("no damage was any")
	}
	if head := openTorn(t, path, wal); head < acknowledged {
		t.Errorf("without damage: head %d after %d was acknowledged", head, acknowledged)
	}
}

// openTorn opens a copy of the database with another write-ahead log, and returns its head.
func openTorn(t *testing.T, path string, wal []byte) int64 {
	t.Helper()
	main, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "p.db")
	for name, content := range map[string][]byte{copied: main, copied + "-wal": wal} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := dialects.Open(t.Context(), "sqlite://"+copied, dialects.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	l := log{opened, t}
	defer l.Close()
	head := l.head().Revision
	rows := l.state(first, end, head)
	if head%5 != 0 || len(rows) != min(int(head), 5) {
		t.Errorf("head %d, state %+v", head, forget(rows))
	}
	for _, r := range rows {
		if !bytes.Equal(r.Value, rows[0].Value) {
			t.Errorf("a batch is there in part: %+v", forget(rows))
		}
	}
	if got := l.put("/registry/after", 0, "x"); got != head+1 {
		t.Errorf("revision %d after head %d", got, head)
	}
	l.check()
	return head
}
