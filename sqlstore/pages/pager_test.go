package pages

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// numbered is a log of n rows, which fails where it is asked for more than it may give.
func numbered(n, failsAt int) func(from string, limit int) ([]changelog.Row, error) {
	return func(from string, limit int) (rows []changelog.Row, err error) {
		for i := range n {
			key := fmt.Sprintf("k%05d", i)
			if key < from {
				continue
			}
			if i == failsAt {
				return nil, errors.New("away")
			}
			if len(rows) == limit {
				break
			}
			rows = append(rows, changelog.Row{Key: key, Value: make([]byte, 100)})
		}
		return rows, nil
	}
}

// Pages have all rows. Those that are read ahead are those that are read one by one, up to an error or until nobody
// wants more.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, failsAt, wanted int }{
		{0, -1, 100}, {1, -1, 100}, {First, -1, 100}, {5000, -1, 100}, {5000, 3000, 100}, {5000, 0, 100}, {5000, -1, 1}, {5000, -1, 2},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			collect := func(pages func(func([]changelog.Row, error) bool)) (keys []string, failed error) {
				n := 0
				for rows, err := range pages {
					for _, r := range rows {
						keys = append(keys, r.Key)
					}
					failed = err
					if n++; n == c.wanted {
						break
					}
				}
				return keys, failed
			}
			want, wantErr := collect(ByKey("", numbered(c.rows, c.failsAt)))
			if c.failsAt < 0 && c.wanted == 100 && len(want) != c.rows {
				t.Errorf("%d rows are in pages", len(want))
			}
			got, err := collect(Ahead(ByKey("", numbered(c.rows, c.failsAt))))
			if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%d keys, %v; want %d, %v", len(got), err, len(want), wantErr)
			}
		})
	}
}
