package reconcile

import (
	"testing"
	"time"
)

// A failure whose message changes with each of its tries, ten a second, is written at most once a
// second, ever more rarely, and yet again and again.
func TestInOtherWords(t *testing.T) {
	const mostWords = 10 * time.Minute
	since := time.Unix(1e9, 0)
	written, last := since, time.Duration(0)
	writes := 0
	for now := since; now.Before(since.Add(24 * time.Hour)); now = now.Add(100 * time.Millisecond) {
		if !InOtherWords(since, written, now, mostWords) {
			continue
		}
		pause := now.Sub(written)
		if pause < time.Second || pause < last || pause > mostWords {
			t.Fatalf("write %d after %v, the one before after %v", writes, pause, last)
		}
		written, last = now, pause
		writes++
	}
	if most := 10 + int(24*time.Hour/mostWords); writes < 24*6 || writes > most {
		t.Errorf("%d writes in a day", writes)
	}
}
