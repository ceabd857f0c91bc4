package manifests_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/admission/manifests"
)

func TestRefused(t *testing.T) {
	m := manifests.Manifests{Dir: t.TempDir()}
	bad := errors.New("bad")
	read := func(hash string, err error) {
		t.Helper()
		if got := m.Load(func() (string, error) { return hash, err }); got != err {
			t.Errorf("load: %v, want %v", got, err)
		}
	}
	for i, step := range []struct {
		does    func()
		refused bool
	}{
		{func() {}, false},
		{func() { read("1", nil) }, false},
		{func() { m.Compiled(nil) }, false},
		{func() { read("", bad) }, true},
		{func() { read("1", nil) }, false},
		{func() { read("2", nil); m.Compiled(bad); m.Compiled(nil) }, true},
		{func() { read("2", nil) }, true}, // it is not compiled again
		{func() { read("", bad) }, true},
		{func() { read("2", nil) }, true},
		{func() { read("3", nil) }, false},
	} {
		if step.does(); m.Refused() != step.refused {
			t.Errorf("step %d: refused %v", i, m.Refused())
		}
	}
}

// TestEmptyFiles: a file that becomes empty is not read, because it may be on its way; one that is empty at the start is.
func TestEmptyFiles(t *testing.T) {
	m := manifests.Manifests{Dir: t.TempDir()}
	loaded := 0
	load := func() (string, error) {
		loaded++
		return "1", nil
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "")
	if err := m.Load(load); err != nil || loaded != 1 {
		t.Error(loaded, err)
	}
	if err := m.Load(load); err == nil || loaded != 1 || !m.Refused() || !strings.Contains(err.Error(), "a.yaml is empty: remove it") {
		t.Error(loaded, err)
	}
	write("a.yaml", "a: b")
	write("notes.txt", "")
	if err := m.Load(load); err != nil || loaded != 2 || m.Refused() {
		t.Error(loaded, err)
	}
	m.Dir = filepath.Join(m.Dir, "nowhere")
	if err := m.Load(load); err == nil || loaded != 2 || !m.Refused() {
		t.Error(loaded, err)
	}
}

// TestWrittenMeanwhile: files that change while they are read are read again; what was read while one was empty never counts.
func TestWrittenMeanwhile(t *testing.T) {
	path := ""
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name      string
		meanwhile func(reading int)
		readings  int
		fails     string
	}{
		{"nothing", func(int) {}, 1, ""},
		{"emptied", func(int) { write("") }, 1, "a.yaml is empty: remove it"},
		{"emptied and written", func(reading int) {
			if reading == 1 {
				write("")
				write("a: longer")
			}
		}, 2, ""},
		{"replaced by one as large", func(reading int) {
			if reading == 1 {
				replace("a: c")
			}
		}, 2, ""},
		{"removed", func(reading int) {
			if reading == 1 {
				os.Remove(path)
			}
		}, 2, ""},
		{"always", func(reading int) { replace("a: c") }, 10, "change all the time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := manifests.Manifests{Dir: t.TempDir()}
			path = filepath.Join(m.Dir, "a.yaml")
			write("a: b")
			if err := m.Load(func() (string, error) { return "1", nil }); err != nil {
				t.Fatal(err)
			}
			readings := 0
			err := m.Load(func() (string, error) {
				readings++
				c.meanwhile(readings)
				return "2", nil
			})
			if readings != c.readings || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) || m.Refused() != (err != nil) {
				t.Errorf("%d readings, %v, refused %v", readings, err, m.Refused())
			}
		})
	}
}

func TestFollow(t *testing.T) {
	stop, ended := make(chan struct{}), make(chan struct{})
	m := manifests.Manifests{Stop: stop}
	m.Follow(func(ctx context.Context) {
		<-ctx.Done()
		close(ended)
	})
	select {
	case <-ended:
		t.Error("ends by itself")
	case <-time.After(5 * time.Millisecond):
	}
	close(stop)
	<-ended
}
