package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// smallDisk mounts a file system of some size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skipf("LOUD: a full disk is not tested, because mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// TestDiskFull fills a disk, deletes until there is room, and goes on.
func TestDiskFull(t *testing.T) {
	dir := smallDisk(t, "64m")
	ctx := context.Background()
	l := open(t, Options{Path: filepath.Join(dir, "p.db"), Reserve: 4 << 20})
	full := false
	look := func() error { full = l.lookAtDisk(ctx, full); return l.Condition() }
	if err := look(); err != nil {
		t.Fatalf("an empty disk: %v", err)
	}
	reserve := func() bool { _, err := os.Stat(l.path + ".reserve"); return err == nil }
	if !reserve() {
		t.Fatal("there is no reserve")
	}

	value := bytes.Repeat([]byte{'x'}, 100_000)
	revisions := map[string]int64{}
	for i := 0; look() == nil; i++ {
		key := fmt.Sprintf("/k%04d", i)
		a, err := l.Append(ctx, []changelog.Change{{Key: key, Value: value}})
		must(t, err) // it says so before it is full
		revisions[key] = a.Results[0].Revision
	}
	if err := l.Condition(); !errors.Is(err, changelog.ErrFull) || !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("condition %v", err)
	}

	// Somebody else takes the rest.
	hog := filepath.Join(dir, "hog")
	fill(t, hog)
	if err := look(); err == nil || !reserve() {
		t.Errorf("condition of a full disk: %v; reserve still there: %v", err, reserve())
	}
	n := 0
	for key, revision := range revisions {
		a, err := l.Append(ctx, []changelog.Change{{Key: key, Expect: revision, Delete: true, Value: []byte("{}")}})
		if err != nil || a.Results[0].Revision == 0 {
			t.Fatalf("delete %d on a full disk: %+v, %v", n, a, err)
		}
		n++
	}
	for swept, through := int64(-1), int64(1<<40); ; {
		c, err := l.Compact(ctx, through, 100, nil)
		must(t, err)
		if c.Swept == swept {
			break
		}
		swept = c.Swept
	}
	must(t, l.Reclaim(ctx))
	if err := look(); err != nil || !reserve() {
		t.Errorf("condition after deletes and compaction: %v; reserve: %v", err, reserve())
	}
	a, err := l.Append(ctx, []changelog.Change{{Key: "/after", Value: value}})
	if err != nil || a.Results[0].Revision == 0 {
		t.Errorf("write after that: %+v, %v", a, err)
	}
}

// TestDiskFullStart starts on a disk without any room but the reserve.
func TestDiskFullStart(t *testing.T) {
	dir := smallDisk(t, "32m")
	path := filepath.Join(dir, "p.db")
	o := Options{Path: path, Reserve: 2 << 20}
	l, err := Open(context.Background(), o)
	must(t, err)
	write(t, l, "/a")
	l.disk.look()
	must(t, l.Close())
	if _, err := os.Stat(path + ".reserve"); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "hog"))
	l = open(t, o)
	if err := l.Condition(); !errors.Is(err, changelog.ErrFull) {
		t.Errorf("condition %v", err)
	}
	rows, err := l.State(context.Background(), "/", "0", 1, 10)
	if err != nil || len(rows) != 1 {
		t.Errorf("state %v, %v", rows, err)
	}
	must(t, os.Remove(filepath.Join(dir, "hog")))
	if l.disk.look(); l.Condition() != nil {
		t.Errorf("with room again: %v", l.Condition())
	}
}

// TestDiskFullByBurst writes faster than the disk is looked at: the batch that would need the
// reserve is refused, and what is in the write-ahead log goes into the file all the same.
func TestDiskFullByBurst(t *testing.T) {
	dir := smallDisk(t, "64m")
	l := open(t, Options{Path: filepath.Join(dir, "p.db"), Reserve: 4 << 20})
	full := l.lookAtDisk(t.Context(), false) // makes the reserve
	value := bytes.Repeat([]byte{'x'}, 100_000)
	var err error
	for i := 0; err == nil; i++ {
		_, err = l.Append(t.Context(), []changelog.Change{{Key: fmt.Sprintf("/k%04d", i), Value: value}})
	}
	if !errors.Is(err, changelog.ErrFull) || !l.disk.hasReserve() {
		t.Errorf("refused with %v; reserve: %v", err, l.disk.hasReserve())
	}
	if l.growthNow() == 0 {
		t.Fatal("nothing is left in the write-ahead log alone")
	}
	if full = l.lookAtDisk(t.Context(), full); !full || l.growthNow() > 0 {
		t.Errorf("full: %v; %d bytes are still in the write-ahead log alone", full, l.growthNow())
	}
}

func (d *disk) hasReserve() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// TestDiskWithoutReserve compacts on a disk on which another program has taken the reserve,
// too: the write-ahead log has room of its own, also after a restart.
func TestDiskWithoutReserve(t *testing.T) {
	dir := smallDisk(t, "64m")
	path, o := filepath.Join(dir, "p.db"), Options{Reserve: 4 << 20}
	o.Path = path
	ctx := context.Background()
	l, err := Open(ctx, o)
	must(t, err)
	value := bytes.Repeat([]byte{'x'}, 100_000)
	revision := int64(0)
	for !l.lookAtDisk(ctx, false) {
		a, err := l.Append(ctx, []changelog.Change{{Key: "/k", Expect: revision, Value: value}})
		must(t, err)
		revision = a.Results[0].Revision
	}
	hog := filepath.Join(dir, "hog")
	fill(t, hog)
	l.disk.ranOut()
	fill(t, hog+"2")
	must(t, l.Close())

	l = open(t, o)
	l.disk.look()
	c, err := l.Compact(ctx, revision, 1000, nil)
	if err != nil || c.Deleted == 0 {
		t.Fatalf("compact: %+v, %v", c, err)
	}
	must(t, l.Reclaim(ctx))
	if l.disk.look(); l.Condition() != nil {
		t.Errorf("after compaction: %v", l.Condition())
	}
	write(t, l, "/after")
}

// TestDiskRanOut: what SQLite says counts, also where the file system says that there is
// room, as with a quota.
func TestDiskRanOut(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "p.db")})
	limit(t, l, 50)
	value := bytes.Repeat([]byte{'x'}, 100_000)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = l.Append(context.Background(), []changelog.Change{{Key: fmt.Sprint("/", i), Value: value}})
	}
	if !errors.Is(err, changelog.ErrUnavailable) || !errors.Is(l.Condition(), changelog.ErrFull) {
		t.Errorf("append: %v; condition: %v", err, l.Condition())
	}
}

// TestNoReserve: it can be switched off.
func TestNoReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	must(t, os.WriteFile(path+".reserve", []byte("of an earlier start"), 0o600))
	l := open(t, Options{Path: path, Reserve: -1})
	l.disk.look()
	if files, _ := filepath.Glob(path + ".reserve"); files != nil || l.Condition() != nil {
		t.Errorf("files %v, condition %v", files, l.Condition())
	}
}

// fill writes a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else {
			must(t, err)
		}
	}
}

// TestEndlessDisk computes with file systems that say that they have no end: there is room.
func TestEndlessDisk(t *testing.T) {
	for _, tt := range []struct {
		blocks     uint64
		size, want int64
	}{
		{0, 4096, 0}, {3, 4096, 12288}, {5, 0, 0}, {1 << 49, 4096, 1 << 61},
		{1 << 51, 4096, endless}, {math.MaxUint64, 1, endless}, {math.MaxUint64, 16 << 20, endless},
	} {
		if got := bytesOf(tt.blocks, tt.size); got != tt.want {
			t.Errorf("%d blocks of %d: %d, want %d", tt.blocks, tt.size, got, tt.want)
		}
	}
}
