package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Every line is written once and whole, those of one writer in order.
func TestGroup(t *testing.T) {
	const writers, lines = 50, 200
	var out bytes.Buffer // group writes one batch at a time
	g := &group{out: &out}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				text := fmt.Sprintf("%d %d\n", w, i)
				if i%50 == 0 {
					text = fmt.Sprintf("%d %d %s\n", w, i, strings.Repeat("x", mostTogether))
				}
				if err := g.write([]byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	next := make([]int, writers)
	for line := range strings.Lines(out.String()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d", &w, &i); err != nil || i != next[w] {
			t.Fatalf("%.40q: %v; the next of its writer is %d", line, err, next[w])
		}
		next[w]++
	}
	for w, n := range next {
		if n != lines {
			t.Errorf("writer %d: %d lines", w, n)
		}
	}
}

// broken takes no write.
type broken struct{ sizes []int }

var errBroken = errors.New("broken")

func (b *broken) Write(p []byte) (int, error) {
	b.sizes = append(b.sizes, len(p))
	return 0, errBroken
}

// Everybody whose line is lost is told, and no batch is larger than one line or mostTogether.
func TestGroupFails(t *testing.T) {
	out := &broken{}
	g := &group{out: out}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := g.write(make([]byte, 10<<10)); !errors.Is(err, errBroken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	total := 0
	for _, size := range out.sizes {
		total += size
		if size > mostTogether {
			t.Errorf("%d bytes together", size)
		}
	}
	if total != 100*10<<10 {
		t.Errorf("%d bytes in all", total)
	}
}
