// Package raw has what the dialects share about logs of raw keys.
package raw

import (
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Rejected is an error of Decide that is not the database's: a transaction ends with Err, without
// a COMMIT.
type Rejected struct{ Err error }

func (r *Rejected) Error() string { return r.Err.Error() }

// Decide calls decide and checks what it returns. wrote says that there is something to write.
func Decide(found *changelog.Found, decide func(*changelog.Found) (changelog.Decision, error)) (d changelog.Decision, wrote bool, err error) {
	if d, err = decide(found); err != nil {
		return d, false, &Rejected{err}
	}
	last := found.Revision
	for i := range d.Rows {
		switch r := &d.Rows[i]; {
		case r.Revision <= last:
			return d, false, &Rejected{fmt.Errorf("transact: row %d comes after %d", r.Revision, last)}
		case len(r.Key) > changelog.MaxKeyBytes:
			return d, false, &Rejected{fmt.Errorf("transact: %w: it has %d bytes, and at most %d are possible", changelog.ErrKey, len(r.Key), changelog.MaxKeyBytes)}
		default:
			last = r.Revision
		}
	}
	return d, len(d.Rows)+len(d.Grant)+len(d.Revoke) > 0, nil
}

// Ended returns the error of Transact if its transaction has ended with err: an error of decide as it is, and
// another one as classify returns it.
func Ended(err error, classify func(error) error) error {
	var rejected *Rejected
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected):
		return rejected.Err
	}
	return fmt.Errorf("transact: %w", classify(err))
}

// Due splits leases in order of their expiry: the ids of those that have expired now, and the
// milliseconds until the next one does, 0 if one has, -1 if there is no lease.
func Due(leases []changelog.Lease, now int64) (ids []int64, next int64) {
	if len(leases) == 0 {
		return nil, -1
	}
	for _, l := range leases {
		if l.Expires > now {
			break
		}
		ids = append(ids, l.ID)
	}
	return ids, max(0, leases[0].Expires-now)
}

// Missed returns by how many milliseconds leases expire later when somebody watches over them
// again; negative if the clock was set back since. The last beat is 0 if nobody ever has.
func Missed(last, now, most int64) int64 {
	if last == 0 || max(now-last, last-now) <= most {
		return 0
	}
	return now - last
}
