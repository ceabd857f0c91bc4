package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// AtRevision is At for raw keys: the state after all of a revision's rows. Unlike an id, a revision
// that has been kept is found by its number alone. It must be below the newest; of that one,
// Current is the state.
func (k *Keys) AtRevision(ctx context.Context, revision int64) (View, error) {
	through := changelog.LastID(revision)
	if snap := k.state.keptWithin(changelog.FirstID(revision), through); snap != nil && through >= k.state.floor.Load() {
		return &stateView{*snap, k.values, "", through}, nil
	}
	return k.values.at(ctx, "", through)
}

// keptWithin returns a kept snapshot of raw keys that covers one of the ids from first to last,
// those of one revision. A snapshot never has a part of a revision only.
func (st *state) keptWithin(first, last int64) *snapshot {
	st.mu.RLock()
	defer st.mu.RUnlock()
	if r := st.resources[""]; r != nil {
		for _, k := range r.kept {
			if k.from <= last && first <= k.through {
				return k
			}
		}
	}
	return nil
}
