package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// errNothing ends a transaction that has nothing to commit.
var errNothing = errors.New("nothing to commit")

// Transact runs decide under the write lock and commits what it decides.
func (l appender) Transact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) error {
	if l.kind != changelog.KindEtcd {
		return fmt.Errorf("transact: %w", changelog.ErrKind)
	}
	err := l.transact(ctx, func(w *writer) error {
		var found changelog.Found
		if err := w.find(ask, l.clock(), &found); err != nil {
			return err
		}
		d, wrote, err := raw.Decide(&found, decide)
		if err == nil && !wrote {
			err = errNothing
		}
		if err == nil {
			w.wrote = loadOfRows(d.Rows)
			err = l.checkRoomForRows(w)
		}
		if err != nil {
			return err
		}
		return w.write(d)
	})
	if err == errNothing {
		return nil
	}
	return raw.Ended(err, l.notice)
}

// find reads what ask says, at a time of the leases' clock. Rows are read only if there are some.
func (w *writer) find(ask changelog.Ask, now int64, f *changelog.Found) error {
	if err := w.findHead(&f.Head, &f.At); err != nil {
		return err
	}
	f.Now = now
	if f.Revision > ask.After && ask.Limit > 0 {
		if err := w.findRows(ask, f); err != nil {
			return err
		}
	}
	for _, id := range ask.Leases {
		w.lease.args[0].Value = id
		exists, err := w.lease.one()
		if err != nil {
			return err
		}
		if exists {
			f.Leases = append(f.Leases, changelog.Lease{ID: id, TTL: w.lease.row[0].(int64), Expires: w.lease.row[1].(int64)})
		}
	}
	return nil
}

func (w *writer) findRows(ask changelog.Ask, f *changelog.Found) error {
	w.after.args[0].Value, w.after.args[1].Value = ask.After, int64(ask.Limit)
	defer clear(w.after.row) // of the last value
	return w.after.each(func(v []driver.Value) {
		value, _ := v[5].([]byte)
		version, _ := v[6].(int64)
		lease, _ := v[7].(int64)
		f.Rows = append(f.Rows, changelog.Row{
			Revision: v[0].(int64), Key: v[1].(string), CreateRevision: v[2].(int64), Deleted: v[3].(int64) != 0,
			At: v[4].(int64), Value: value, Version: version, Lease: lease,
		})
	})
}

// write writes what was decided: leases that go first, so that an id can be granted anew.
func (w *writer) write(d changelog.Decision) error {
	for _, id := range d.Revoke {
		w.revoke.args[0].Value = id
		if err := w.revoke.run(); err != nil {
			return err
		}
	}
	for _, g := range d.Grant {
		v := w.grant.args
		v[0].Value, v[1].Value, v[2].Value = g.ID, g.TTL, g.Expires
		if err := w.grant.run(); err != nil {
			return err
		}
	}
	if len(d.Rows) == 0 {
		return w.turn()
	}
	for i := range d.Rows {
		if err := w.insertRaw(&d.Rows[i]); err != nil {
			return err
		}
	}
	w.drawn = d.Rows[len(d.Rows)-1].Revision
	return nil
}

func (w *writer) insertRaw(r *changelog.Row) error {
	value := r.Value
	if value == nil {
		value = []byte{}
	}
	v := w.insert.args
	defer func() { v[5].Value = nil }()
	v[0].Value, v[1].Value, v[2].Value = r.Revision, r.Key, r.CreateRevision
	v[3].Value, v[4].Value, v[5].Value = r.Deleted, r.At, value
	v[6].Value, v[7].Value = r.Version, r.Lease
	return w.insert.run()
}

// Cut moves the floor at once.
func (l compaction) Cut(ctx context.Context, through int64) (found int64, err error) {
	err = l.transact(ctx, func(w *writer) error {
		if err := w.scan(`SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'`, nil, &found); err != nil {
			return err
		}
		if through <= found {
			return errNothing
		}
		if _, err := w.exec(`UPDATE meta SET value = CAST(? AS TEXT) WHERE name = 'floor'`, through); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil && err != errNothing {
		return 0, fmt.Errorf("cut: %w", err)
	}
	return found, nil
}
