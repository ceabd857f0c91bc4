package main

import (
	"bytes"
	"strings"
	"testing"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestLogTailJSON prints changes from before the watch as those that come are: with their kind.
func TestLogTailJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tail := &logTail{q: &logQuery{output: "json"}, s: &screen{Writer: &b}}
	must(t, tail.show(nil, historyv1.Change{Description: historyv1.Description{Revision: 7}}))
	if got := b.String(); !strings.HasPrefix(got, `{"kind":"Change","apiVersion":"history.plinth.io/v1",`) {
		t.Errorf("printed: %s", got)
	}
}
