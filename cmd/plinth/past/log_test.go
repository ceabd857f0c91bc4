package past

import (
	"errors"
	"iter"
	"slices"
	"testing"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

func changesOf(revisions []int64, end error) iter.Seq2[historyv1.Change, error] {
	return func(yield func(historyv1.Change, error) bool) {
		for _, r := range revisions {
			if !yield(historyv1.Change{Description: historyv1.Description{Revision: r}}, nil) {
				return
			}
		}
		if end != nil {
			yield(historyv1.Change{}, end)
		}
	}
}

// TestMerged merges lists of changes and stops at an error, wherever it is.
func TestMerged(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, test := range []struct {
		a, b       []int64
		errA, errB error
		limit      int
		want       []int64
		err        error
	}{
		{nil, nil, nil, nil, 0, nil, nil},
		{[]int64{5, 3}, nil, nil, nil, 0, []int64{5, 3}, nil},
		{nil, []int64{5, 3}, nil, nil, 0, []int64{5, 3}, nil},
		{[]int64{9, 5, 2}, []int64{8, 5, 1}, nil, nil, 0, []int64{9, 8, 5, 2, 1}, nil},
		{[]int64{9, 5, 2}, []int64{8, 5, 1}, nil, nil, 3, []int64{9, 8, 5}, nil},
		{[]int64{9}, []int64{8, 7}, broken, nil, 0, []int64{9}, broken},
		{[]int64{9, 6}, []int64{8}, nil, broken, 0, []int64{9, 8}, broken},
		{nil, nil, nil, broken, 0, nil, broken},
	} {
		var got []int64
		var end error
		for change, err := range Limited(merged(changesOf(test.a, test.errA), changesOf(test.b, test.errB)), test.limit) {
			if end = err; err == nil {
				got = append(got, change.Revision)
			}
		}
		if !slices.Equal(got, test.want) || !errors.Is(end, test.err) {
			t.Errorf("%v and %v: %v, %v; want %v, %v", test.a, test.b, got, end, test.want, test.err)
		}
	}
}
