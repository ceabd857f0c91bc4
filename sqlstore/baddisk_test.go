package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/baddisk"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// creators create objects until they are told to stop, each at most once, and remember what they were told.
type creators struct {
	store   *Store
	running sync.WaitGroup
	stop    context.CancelFunc

	mu      sync.Mutex
	acked   map[string]int64 // revisions by key
	unknown map[string]bool
	refused int
	wrong   error // that nobody should get
}

func startCreators(t *testing.T, s *Store, n int) *creators {
	ctx, stop := context.WithCancel(t.Context())
	c := &creators{store: s, stop: stop, acked: map[string]int64{}, unknown: map[string]bool{}}
	for i := range n {
		c.running.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				c.create(fmt.Sprintf("%sns/%d-%d", maps, i, j))
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// padding makes some hundred objects fill a write-ahead log.
var padding = strings.Repeat("x", 20_000)

func (c *creators) create(key string) {
	e, err := c.store.Commit(context.Background(), Change{Key: key, Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","data":{"x":%q}}`, padding)})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.acked[key] = e.Revision
		return
	case errors.Is(err, changelog.ErrUnknown):
		c.unknown[key] = true
	case errors.Is(err, changelog.ErrUnavailable):
		c.refused++
	default:
		c.wrong = err
	}
	time.Sleep(time.Millisecond) // so that refusals do not take the machine
}

func (c *creators) end() {
	c.stop()
	c.running.Wait()
}

// counts returns how many creations have succeeded, and how many have failed.
func (c *creators) counts() (acked, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked), len(c.unknown) + c.refused
}

// more waits until so many creations more have succeeded.
func (c *creators) more(t *testing.T, n int) {
	t.Helper()
	begun, _ := c.counts()
	until(t, fmt.Sprintf("%d more are acknowledged", n), func() bool { acked, _ := c.counts(); return acked >= begun+n })
}

// known returns what was acknowledged until now.
func (c *creators) known() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]int64{}
	for key, revision := range c.acked {
		known[key] = revision
	}
	return known
}

// TestFailingDisk has the disk of SQLite fail in each way while clients write. What is acknowledged is
// there, reads of the present go on, and when the disk is well again writes go on without a restart.
func TestFailingDisk(t *testing.T) {
	disk := baddisk.New(t)
	path := filepath.Join(t.TempDir(), "p.db")
	log := openLog(t, "sqlite://"+path)
	s := openStore(t, log, Options{})
	first := create(t, s, maps+"ns/first")
	c := startCreators(t, s, 4)
	for _, f := range []struct {
		name, ending, operation string
		code                    int
		refuses                 bool // writes fail; else only what copies the write-ahead log into the file does
	}{
		{"write to the write-ahead log", "-wal", baddisk.Write, baddisk.WriteError, true},
		{"full disk", "-wal", baddisk.Write, baddisk.Full, true},
		{"sync of the write-ahead log", "-wal", baddisk.Sync, baddisk.SyncError, true},
		{"write to the file", "", baddisk.Write, baddisk.WriteError, false},
		{"sync of the file", "", baddisk.Sync, baddisk.SyncError, false},
		{"read of the write-ahead log", "-wal", baddisk.Read, baddisk.ReadError, false},
	} {
		c.more(t, 20)
		disk.Fail(path+f.ending, f.operation, f.code)
		_, before := c.counts()
		until(t, f.name+" fails", func() bool {
			_, failed := c.counts()
			return disk.Failures() > 0 && (!f.refuses || failed >= before+4)
		})
		if f.refuses {
			acked, _ := c.counts()
			time.Sleep(50 * time.Millisecond)
			if now, _ := c.counts(); now > acked {
				t.Errorf("%s: %d writes were acknowledged meanwhile", f.name, now-acked)
			}
		}
		if s.Get(first.Key) == nil {
			t.Errorf("%s: reads from memory stopped", f.name)
		}
		t.Logf("%s: %d failures", f.name, disk.Failures())
		disk.Heal()
		c.more(t, 20)
		until(t, "it is well again", func() bool { return s.Healthy() == nil })
	}
	c.end()
	if c.wrong != nil {
		t.Errorf("a writer was told: %v", c.wrong)
	}
	c.check(t, log, c.known())
}

// check compares what was acknowledged with a log.
func (c *creators) check(t *testing.T, log changelog.Log, acked map[string]int64) {
	t.Helper()
	there := map[string]int64{}
	for after, whole := int64(0), false; !whole; {
		rows, err := log.Rows(t.Context(), after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			there[r.Key], after = r.Revision, r.Revision
		}
		whole = len(rows) == 0
	}
	for key, revision := range acked {
		if there[key] != revision {
			t.Errorf("%s was acknowledged at %d, and is there at %d", key, revision, there[key])
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range there {
		if c.acked[key] == 0 && !c.unknown[key] && strings.Contains(key, "-") {
			t.Errorf("%s was refused, and is there", key)
		}
	}
}

// TestPowerCut cuts the power again and again while clients write. Of each file the disk has what was synced,
// or all that was written; what was acknowledged until then is there in each case.
func TestPowerCut(t *testing.T) {
	disk := baddisk.New(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "p.db")
	disk.Watch(path)
	s := openStore(t, openLog(t, "sqlite://"+path+""), Options{})
	c := startCreators(t, s, 4)
	for i := range 8 {
		c.more(t, 30)
		lost := map[string]bool{"": i%2 == 0, "-wal": i%3 != 2}
		known := c.known()
		after := filepath.Join(dir, fmt.Sprintf("cut-%d.db", i))
		disk.PowerCut(path, after, lost)
		log := openLog(t, "sqlite://"+after)
		c.check(t, log, known)
		checkRows(t, log)
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	c.end()
	if acked, failed := c.counts(); failed > 0 || c.wrong != nil {
		t.Errorf("%d writes succeeded, %d failed: %v", acked, failed, c.wrong)
	}
}
