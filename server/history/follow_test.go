package history_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/history"
)

// TestRowsOfWatches has watches of versions of several sizes ask for rows: of large ones for few more than they send, and of
// small ones soon for as many as they may.
func TestRowsOfWatches(t *testing.T) {
	const versions = 1000
	for name, c := range map[string]struct{ size, polls, asked int }{
		"large":  {history.PartBytes * 2, versions + 1, 2*versions + 100},
		"middle": {history.PartBytes / 4, versions/4 + 10, versions*5/4 + 100},
		"small":  {1, versions/history.PartRows + 10, versions + 100},
	} {
		polls, asked := 0, 0
		for rows, left := history.FirstRows, versions; left > 0; polls++ {
			there := min(rows, left)
			sent := min(there, max(1, history.PartBytes/c.size))
			asked, left = asked+there, left-sent
			rows = history.NextRows(rows, sent, sent < there)
		}
		if polls > c.polls || asked > c.asked {
			t.Errorf("%s: %d polls, want %d; asked for %d rows, want %d", name, polls, c.polls, asked, c.asked)
		}
	}
}
