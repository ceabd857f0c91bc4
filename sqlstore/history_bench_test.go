package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// BenchmarkHistory reads all 1,000 versions of one object in a log of a million rows.
func BenchmarkHistory(b *testing.B) {
	const rows, every = 1_000_000, 1000
	log := openLog(b, fileDSN(b))
	defer log.Close()
	const object = "/registry/apps/deployments/shop/web"
	value := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"text":"` + strings.Repeat("x", 512) + `"}}`)
	last := int64(0)
	for n := 0; n < rows; n += every {
		batch := make([]changelog.Change, every)
		for i := range batch {
			batch[i] = changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/shop/%07d", n+i), Value: value}
		}
		batch[0] = changelog.Change{Key: object, Expect: last, Value: value}
		done, err := log.Append(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		last = done.Results[0].Revision
	}
	q := changelog.HistoryQuery{From: object, To: object + "\x00", Through: changelog.Forever, Limit: 2000}
	for _, sizes := range []bool{false, true} {
		b.Run(fmt.Sprintf("sizes=%v", sizes), func(b *testing.B) {
			q.Sizes = sizes
			for b.Loop() {
				if found, err := log.History(b.Context(), q); err != nil || len(found) != rows/every {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}
