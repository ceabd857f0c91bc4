package sqlite

import (
	"errors"
	"fmt"
	"testing"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestClassify: what SQLite says of a damaged file is no outage that passes.
func TestClassify(t *testing.T) {
	for code, want := range map[sqlite.ErrNo]error{
		sqlite.ErrCorrupt: changelog.ErrDamaged, sqlite.ErrNotADB: changelog.ErrDamaged,
		sqlite.ErrBusy: changelog.ErrUnavailable, sqlite.ErrFull: changelog.ErrUnavailable,
	} {
		err := classify(fmt.Errorf("append: %w", sqlite.Error{Code: code}))
		if !errors.Is(err, want) || errors.Is(err, changelog.ErrDamaged) != (want == changelog.ErrDamaged) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
