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
