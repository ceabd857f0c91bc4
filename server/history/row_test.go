package history

import (
	"testing"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestDescribe has rows from another database, up to revision 10, and later ones.
func TestDescribe(t *testing.T) {
	for _, row := range []struct {
		revision, created int64
		deleted           bool
		want              v1.Action
	}{
		{5, 5, false, v1.Copied},
		{7, 5, false, v1.Copied}, // changed while it was copied, or copied anew
		{9, 5, true, v1.Deleted},
		{11, 5, false, v1.Changed},
		{12, 12, false, v1.Created},
		{13, 12, true, v1.Deleted},
	} {
		r := changelog.HistoryRow{Row: changelog.Row{Revision: row.revision, CreateRevision: row.created, Deleted: row.deleted}}
		if got := (kinds{}).describe(&r, place{name: "a"}, 10); got.Action != row.want {
			t.Errorf("revision %d of what was created at %d: %s, want %s", row.revision, row.created, got.Action, row.want)
		}
	}
}
