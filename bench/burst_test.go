package bench

import (
	"strings"
	"testing"
)

func TestReadLines(t *testing.T) {
	if err := readLines(strings.NewReader("a\nb\nc\n"), 3); err != nil {
		t.Error(err)
	}
	if err := readLines(strings.NewReader("a\n"), 3); err == nil || !strings.Contains(err.Error(), "2 events are missing") {
		t.Errorf("error %v", err)
	}
}
