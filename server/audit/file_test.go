package audit

import (
	"os"
	"path/filepath"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// A log that grows beyond its size is rotated if it is a file. A device keeps its name.
func TestFileRotates(t *testing.T) {
	device := filepath.Join(t.TempDir(), "device")
	if err := os.Symlink(os.DevNull, device); err != nil {
		t.Fatal(err)
	}
	for path, files := range map[string]int{filepath.Join(t.TempDir(), "audit.log"): 2, device: 1} {
		o := NewOptions().LogOptions
		o.Path, o.MaxSize, o.MaxBackups = path, 1, 1
		f, err := ownFile(&o)
		if err != nil {
			t.Fatal(err)
		}
		event := &auditinternal.Event{RequestURI: string(make([]byte, 1<<10))}
		for range 300 { // a zero has six bytes in JSON
			if !f.ProcessEvents(event) {
				t.Fatal("not written")
			}
		}
		f.Shutdown()
		if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != files {
			t.Errorf("%s: %v, %v", path, list, err)
		}
	}
}

// What cannot be written refuses the request in the strict mode only.
func TestFileStrict(t *testing.T) {
	for mode, want := range map[string]bool{"blocking": true, "blocking-strict": false} {
		o := NewOptions().LogOptions
		o.Path, o.BatchOptions.Mode = "/dev/full", mode
		f, err := ownFile(&o)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.ProcessEvents(&auditinternal.Event{}); got != want {
			t.Errorf("%s: %v", mode, got)
		}
		f.Shutdown()
	}
}
