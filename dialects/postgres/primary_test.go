package postgres

import (
	"errors"
	"testing"
)

// TestElection has hosts answer, one after the other, and looks after each answer whether one of them is chosen.
func TestElection(t *testing.T) {
	silent := errors.New("no answer")
	const none = -1
	type heard struct {
		hostAnswer
		chosen int
	}
	for name, test := range map[string]struct {
		known   int64
		over    bool
		answers []heard
	}{
		"opened, the old one first":     {0, false, []heard{{hostAnswer{1, 1, nil}, none}, {hostAnswer{0, 2, nil}, none}, {hostAnswer{2, 0, silent}, 0}}},
		"opened, the old one last":      {0, false, []heard{{hostAnswer{0, 2, nil}, none}, {hostAnswer{2, 0, silent}, none}, {hostAnswer{1, 1, nil}, 0}}},
		"opened, the others are silent": {0, true, []heard{{hostAnswer{1, 1, nil}, 1}}},
		"opened, of no timeline":        {0, false, []heard{{hostAnswer{1, 0, nil}, 1}}},
		"the same one":                  {2, false, []heard{{hostAnswer{0, 2, nil}, 0}}},
		"a promoted one":                {2, false, []heard{{hostAnswer{0, 0, silent}, none}, {hostAnswer{1, 3, nil}, 1}}},
		"the old one, the primary is silent": {2, true, []heard{{hostAnswer{1, 1, nil}, none}, {hostAnswer{2, 0, silent}, none},
			{hostAnswer{2, 0, silent}, none}}},
		"the old one, then the primary":  {2, true, []heard{{hostAnswer{1, 1, nil}, none}, {hostAnswer{0, 2, nil}, 0}}},
		"old ones are all that is there": {3, true, []heard{{hostAnswer{1, 2, nil}, none}, {hostAnswer{0, 1, nil}, none}, {hostAnswer{2, 0, silent}, 1}}},
		"none":                           {2, true, []heard{{hostAnswer{0, 0, silent}, none}, {hostAnswer{1, 0, silent}, none}, {hostAnswer{2, 0, silent}, none}}},
	} {
		e := election{known: test.known, over: test.over, errs: make([]error, 3), unheard: 3}
		for n, a := range test.answers {
			e.hear(a.hostAnswer)
			got := none
			if chosen := e.chosen(); chosen != nil {
				got = chosen.host
			}
			if got != a.chosen {
				t.Errorf("%s: after answer %d host %d is chosen, not %d", name, n, got, a.chosen)
			}
		}
	}
}
