package status

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestPercentile(t *testing.T) {
	var stats sqlstore.Stats
	if p := percentile(&stats, 99); p != 0 {
		t.Errorf("of nothing: %v", p)
	}
	stats.Appends[0], stats.Appends[3] = 99, 1
	if p := percentile(&stats, 99); p != sqlstore.AppendBounds[0] {
		t.Errorf("of 99 fast ones: %v", p)
	}
	stats.Appends[3]++
	if p := percentile(&stats, 99); p != sqlstore.AppendBounds[3] {
		t.Errorf("of 99 fast ones and two slow ones: %v", p)
	}
	stats.Appends[len(stats.Appends)-1] = 1000
	if p := percentile(&stats, 99); p != 2*sqlstore.AppendBounds[len(sqlstore.AppendBounds)-1] {
		t.Errorf("of slower ones than all bounds: %v", p)
	}
}
