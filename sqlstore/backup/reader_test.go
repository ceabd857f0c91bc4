package backup_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// What was written is read.
func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 500, 20_000} {
		want := random(7, n)
		from := io.Reader(bytes.NewReader(want.write(t)))
		if n <= 500 { // a byte at a time, many take seconds
			from = iotest.OneByteReader(from)
		}
		got, err := read(from)
		must(t, err)
		if !reflect.DeepEqual(*want, got) {
			t.Errorf("%d rows (-want +got)\n%s", n, cmp.Diff(*want, got, cmp.AllowUnexported(content{})))
		}
	}
}

// A row may be longer than a chunk is otherwise, and not longer than one can be.
func TestLargeRow(t *testing.T) {
	c := content{rows: []changelog.Row{{Revision: 1, CreateRevision: 1, Key: "/registry/core/configmaps/default/a", Value: object("/registry/core/configmaps/default/a", 4<<20)}}}
	got, err := read(bytes.NewReader(c.write(t)))
	must(t, err)
	if len(got.rows[0].Value) != len(c.rows[0].Value) {
		t.Errorf("%d bytes", len(got.rows[0].Value))
	}
	w, err := NewWriter(io.Discard, Header{})
	must(t, err)
	if err := w.Row(&changelog.Row{Revision: 1, Value: make([]byte, 17<<20)}); err == nil {
		t.Error("a row of 17 MiB was written, which cannot be read")
	}
}

// TestCut cuts a backup off after each of its bytes.
func TestCut(t *testing.T) {
	file := random(3, 40).write(t)
	for n := range file {
		_, err := read(bytes.NewReader(file[:n]))
		if !errors.Is(err, ErrCut) {
			t.Fatalf("after %d of %d bytes: %v", n, len(file), err)
		}
	}
}

// TestAltered changes each bit of a backup, and adds a byte.
func TestAltered(t *testing.T) {
	file := random(3, 40).write(t)
	for i := range file {
		for bit := range 8 {
			other := bytes.Clone(file)
			other[i] ^= 1 << bit
			_, err := read(bytes.NewReader(other))
			newer := errors.Is(err, ErrNewer) && i == 8 // the format
			if !errors.Is(err, ErrAltered) && !errors.Is(err, ErrCut) && !errors.Is(err, ErrNotBackup) && !newer {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	if _, err := read(bytes.NewReader(append(bytes.Clone(file), 0))); !errors.Is(err, ErrAltered) {
		t.Errorf("with one byte more: %v", err)
	}
}

// A file that is something else, and one of a later format, are called what they are.
func TestOtherFile(t *testing.T) {
	file := random(3, 1).write(t)
	file[8] = 2
	for text, want := range map[string]error{"SQLite format 3\x00": ErrNotBackup, "": ErrCut, string(file): ErrNewer} {
		if _, err := read(bytes.NewReader([]byte(text))); !errors.Is(err, want) {
			t.Errorf("%.10q: %v, want %v", text, err, want)
		}
	}
}

// What cannot be read says so, and is not taken for the end.
func TestBrokenDisk(t *testing.T) {
	broken := errors.New("input/output error")
	file := random(3, 40).write(t)
	for _, n := range []int{0, 5, 9, 10, 11, 100, len(file) - 1} {
		from := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
		if _, err := read(from); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}
