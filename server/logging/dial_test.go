package logging

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestDial changes the verbosity of a log in each format, and of klog's.
func TestDial(t *testing.T) {
	defer func() { _, _ = NewDial(0).Set("0") }()
	for _, format := range []Format{Text, JSON} {
		var out bytes.Buffer
		d := NewDial(0)
		logger := New(&out, Options{Format: format, Dial: d}).With("a", 1)
		for _, step := range []struct {
			put, answer, wrong string
			shown, libraries   bool // records for developers, and those of klog.V(4)
		}{
			{"", "", "", false, false},
			{"4", "successfully set klog.logging.verbosity to 4", "", true, true},
			{"1", "successfully set klog.logging.verbosity to 1", "", true, false},
			{"99", "successfully set klog.logging.verbosity to 7", "", true, true}, // from 8 on client-go logs Secrets
			{"0", "successfully set klog.logging.verbosity to 0", "", false, false},
			{"-1", "", `strconv.ParseUint: parsing "-1": invalid syntax`, false, false},
		} {
			if step.put != "" {
				answer, err := d.Set(step.put)
				if answer != step.answer || (err == nil) != (step.wrong == "") || err != nil && err.Error() != step.wrong {
					t.Errorf("%s: %q, %v", step.put, answer, err)
				}
			}
			out.Reset()
			logger.Debug("for developers")
			if shown := strings.Contains(out.String(), "for developers"); shown != step.shown {
				t.Errorf("%s after %q: shown: %v", format, step.put, shown)
			}
			if got := klog.V(4).Enabled(); got != step.libraries {
				t.Errorf("after %q klog.V(4) is enabled: %v", step.put, got)
			}
		}
	}
}

// TestOnlyWarnings leaves records out until a verbosity is set.
func TestOnlyWarnings(t *testing.T) {
	defer func() { _, _ = NewDial(0).Set("0") }()
	var out bytes.Buffer
	d := NewDial(0)
	logger := New(&out, Options{Dial: d}).With("a", 1)
	d.OnlyWarnings()
	logger.Info("all is well")
	logger.Warn("beware")
	if got := out.String(); strings.Contains(got, "all is well") || !strings.Contains(got, "beware") {
		t.Errorf("logged %q", got)
	}
	if _, err := d.Set("0"); err != nil {
		t.Fatal(err)
	}
	if logger.Info("all is well"); !strings.Contains(out.String(), "all is well") {
		t.Errorf("logged %q after a verbosity was set", out.String())
	}
}
