package sqlite

import (
	"errors"
	"fmt"
	"testing"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/sqlstore"
)

// TestClassify: what SQLite says of a damaged file is no outage that passes.
func TestClassify(t *testing.T) {
	for code, want := range map[sqlite.ErrNo]error{
		sqlite.ErrCorrupt: sqlstore.ErrDamaged, sqlite.ErrNotADB: sqlstore.ErrDamaged,
		sqlite.ErrBusy: sqlstore.ErrUnavailable, sqlite.ErrFull: sqlstore.ErrUnavailable,
	} {
		err := classify(fmt.Errorf("append: %w", sqlite.Error{Code: code}))
		if !errors.Is(err, want) || errors.Is(err, sqlstore.ErrDamaged) != (want == sqlstore.ErrDamaged) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
