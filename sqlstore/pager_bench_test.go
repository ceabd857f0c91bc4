package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// BenchmarkFirstRead opens a store of 100,000 objects of 1 KiB.
func BenchmarkFirstRead(b *testing.B) {
	for _, d := range logtest.Dialects {
		b.Run(d.Name, func(b *testing.B) {
			dsn := d.Fresh(b)
			log := openLog(b, dsn)
			const objects = 100_000
			for i := 0; i < objects; {
				var batch []changelog.Change
				for ; len(batch) < 1000; i++ {
					key := fmt.Sprintf("%sns/%07d", maps, i)
					batch = append(batch, changelog.Change{Key: key, Value: kilobyte(key)})
				}
				if _, err := log.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				log := openLog(b, dsn)
				s, err := object.Open(b.Context(), log, Options{History: -1})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
