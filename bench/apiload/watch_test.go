package apiload

import (
	"context"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/measure"
)

// TestFollow reads a stream of events, of which one is of another object, and ends with an error.
func TestFollow(t *testing.T) {
	event := func(kind, revision, n string) string {
		return `{"type":"` + kind + `","object":{"metadata":{"resourceVersion":"` + revision + `"},"data":{"n":"` + n + `","sent":"1000"}}}` + "\n"
	}
	stream := event("ADDED", "2", "0") + `{"type":"ADDED","object":{"metadata":{"resourceVersion":"3"}}}` + "\n" +
		event("MODIFIED", "4", "1") + event("DELETED", "5", "1")
	for end, want := range map[string]string{
		"":                                    "of 3; a watch ended: the watch has ended: EOF",
		event("MODIFIED", "4", "1"):           "of 3, 1 repeated; a watch ended: the watch has ended: EOF",
		`{"type":"ERROR","object":{}}` + "\n": `of 3; a watch ended: {"type":"ERROR","object":{}}`,
	} {
		a, _ := measure.NewAudience(context.Background())
		for n := range 2 {
			a.Ledger.Begin(0)
			a.Ledger.Put(n, measure.Done)
		}
		a.Ledger.Deleted(1, measure.Done)
		a.Seat(0, 1, func(w *measure.Watch) { w.Fail(follow(w, strings.NewReader(stream+end))) })
		a.End()
		v := a.Judge()
		if faults := v.Faults(error.Error); faults.Note != want {
			t.Errorf("after %q: %q, want %q", end, faults.Note, want)
		}
	}
}
