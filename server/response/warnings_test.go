package response

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestWarnings wants each text once, and all of them shortened when they grow long.
func TestWarnings(t *testing.T) {
	header := http.Header{}
	w := NewWarnings(header)
	w.AddWarning("", "one")
	w.AddWarning("", "")
	w.AddWarning("", "one")
	if got := header.Values("Warning"); !slices.Equal(got, []string{`299 - "one"`}) {
		t.Fatalf("got %q", got)
	}
	long := strings.Repeat("x", warningsTotalRunes)
	w.AddWarning("", long)
	want := []string{`299 - "one"`, `299 - "` + long[:warningItemRunes] + `"`}
	if got := header.Values("Warning"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range warningsTotalRunes {
		w.AddWarning("", strings.Repeat("y", i+1))
	}
	if size := len(strings.Join(header.Values("Warning"), "")); size > 2*warningsTotalRunes {
		t.Errorf("headers have %d bytes", size)
	}
}

// TestBesidesAdmission wants the warnings that were given while admission was asked left out.
func TestBesidesAdmission(t *testing.T) {
	w := NewWarnings(http.Header{})
	w.AddWarning("", "before")
	done := w.AskAdmission()
	w.AddWarning("", "of admission")
	done()
	w.AddWarning("", "after")
	if got := w.BesidesAdmission(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("got %q", got)
	}
}
