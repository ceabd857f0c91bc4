package backups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// A folder is listed with the backups of the cluster alone, the newest first, and a file that was just made is there at once.
func TestList(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 3)
	dir := t.TempDir()
	other := "plinth-11111111-2222-3333-4444-555555555555-"
	touch(t, dir, 0, nameAt(b.prefix(), 2*time.Hour), nameAt(b.prefix(), 3*time.Hour), nameAt(other, time.Hour), tempPrefix+"123", "mine"+extension,
		b.prefix()+"mine"+extension, strings.Replace(nameAt(b.prefix(), time.Hour), "-r7", "-rx", 1))
	if err := os.Mkdir(filepath.Join(dir, nameAt(b.prefix(), time.Minute)), 0o700); err != nil {
		t.Fatal(err)
	}
	if l := b.List(dir); l.Count != 2 || l.Err != nil || l.Read.IsZero() || l.Files[0].Time.Before(l.Files[1].Time) || l.Files[1].Revision != 7 {
		t.Errorf("%+v", l)
	}
	touch(t, dir, 0, nameAt(b.prefix(), 4*time.Hour))
	if l := b.List(dir); l.Count != 2 {
		t.Errorf("the folder was read again: %+v", l)
	}
	if err := b.WriteTo(t.Context(), Interval{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	l := b.List(dir)
	if l.Count != 4 {
		t.Fatalf("after a backup: %+v", l)
	}
	info, err := os.Stat(filepath.Join(dir, l.Files[0].Name))
	if err != nil || info.Size() != l.Files[0].Bytes || l.Files[0].Revision != b.config.Revision() || time.Since(l.Files[0].Time).Abs() > time.Minute {
		t.Errorf("%+v, %v", l.Files[0], err)
	}
}

// Of many files the newest are named, and all are counted.
func TestListMany(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 1)
	dir := t.TempDir()
	for i := range mostListed + 20 {
		touch(t, dir, 0, nameAt(b.prefix(), time.Duration(i+1)*time.Hour))
	}
	l := b.List(dir)
	if l.Count != mostListed+20 || len(l.Files) != mostListed || time.Since(l.Files[0].Time) > 90*time.Minute {
		t.Errorf("%d of %d: %+v", len(l.Files), l.Count, l.Files[0])
	}
}

// A folder that is missing has no files yet, and one that cannot be read is a fault, which does not say where it is.
func TestListBad(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 1)
	dir := filepath.Join(t.TempDir(), "folder")
	if l := b.List(dir); l.Count != 0 || l.Err != nil || l.Read.IsZero() {
		t.Errorf("no folder: %+v", l)
	}
	if err := b.WriteTo(t.Context(), Interval{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	before := b.List(dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.listed.forget()
	l := b.List(dir)
	if !errors.Is(l.Err, syscall.ENOTDIR) || strings.Contains(l.Err.Error(), dir) || l.Count != 1 || fmt.Sprint(l.Files) != fmt.Sprint(before.Files) || l.Read != before.Read {
		t.Errorf("a file in its place: %+v", l)
	}
}

// A disk that does not answer delays nobody for long, and is read by one at a time.
func TestListSlow(t *testing.T) {
	var l listed
	first := Listing{Count: 3, Read: time.Now()}
	if got := l.now(func() Listing { return first }); got.Count != 3 || got.Err != nil {
		t.Errorf("%+v", got)
	}
	l.forget()
	answers := make(chan Listing)
	begun := time.Now()
	for range 5 {
		if got := l.now(func() Listing { return <-answers }); got.Count != 3 || got.Err == nil {
			t.Errorf("while the disk does not answer: %+v", got)
		}
	}
	if took := time.Since(begun); took > 4*listPatience {
		t.Errorf("five calls took %v", took)
	}
	answers <- Listing{Count: 4}
	for got := l.now(nil); got.Count != 4; got = l.now(nil) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("afterwards: %+v", got)
		}
	}
}
