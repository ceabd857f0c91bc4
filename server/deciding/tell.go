package deciding

import (
	"log/slog"
	"strings"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// mostTold is how many keys one record of the log has.
const mostTold = 20

// Teller logs the keys of objects that decide and cannot be decrypted. Of damaged ones the store has logged each. The zero
// Teller has told nothing. It is for one goroutine.
type Teller struct {
	told map[string]bool // keys
}

// Tell logs which of objects have come since it was called last, a record for each resource. The objects of a resource follow
// each other, as those of Unreadable do.
func (t *Teller) Tell(logger *slog.Logger, objects []*sqlstore.Unreadable) {
	told, added := map[string]bool{}, [][]string(nil)
	for _, u := range objects {
		if u.Damaged() {
			continue
		}
		told[u.Key] = true
		if t.told[u.Key] {
			continue
		}
		if n := len(added); n > 0 && object.ResourceOf(added[n-1][0]) == object.ResourceOf(u.Key) {
			added[n-1] = append(added[n-1], u.Key)
		} else {
			added = append(added, []string{u.Key})
		}
	}
	t.told = told
	for _, keys := range added {
		logger.Error("objects that decide about requests cannot be decrypted; bring their key back, or delete them as docs/encryption.md says",
			"objects", len(keys), "keys", strings.Join(keys[:min(len(keys), mostTold)], " "))
	}
}
