package etcd

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"go.etcd.io/bbolt"
)

const (
	snapshotRows  = 1000 // rows in a transaction of the file
	snapshotBytes = 4 << 20
)

// snapshotFile makes a snapshot in a file whose name is removed at once where the system allows that, so that
// even a crash does not leave it behind.
func (s *Server) snapshotFile(ctx context.Context) (f *os.File, size int64, err error) {
	if err := take(ctx, s.snapshots.making); err != nil {
		return nil, 0, err
	}
	defer func() { <-s.snapshots.making }()
	f, err = os.CreateTemp(s.o.Dir, "snapshot-*.tmp")
	if err != nil {
		return nil, 0, err
	}
	defer os.Remove(f.Name()) // if an open file cannot be removed
	db, err := bbolt.Open(f.Name(), 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	_ = os.Remove(f.Name())
	if err == nil {
		w := &snapshotWriter{s: s, db: db, leased: make(map[string]int64)}
		err = w.write(ctx)
		if err == nil {
			err = db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
		}
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// snapshotWriter fills a file. It reads rows in pages while others write and compact. The snapshot shows the
// state at the end: the newest row that was read, with the floor of that time, which must not be above that
// row.
type snapshotWriter struct {
	s  *Server
	db *bbolt.DB

	revision int64 // id of the newest row in the file, or above it
	floor    int64

	batch  []pair // rows that are not written yet
	bytes  int
	leased map[string]int64 // keys with a lease at revision
}

func (w *snapshotWriter) write(ctx context.Context) error {
	if err := w.db.Update(makeBuckets); err != nil {
		return err
	}
	before, _, err := w.s.store.Keys().Leases(ctx, nil)
	if err != nil {
		return err
	}
	if err := w.copyRows(ctx); err != nil {
		return err
	}
	leases, err := w.leases(ctx, before)
	if err != nil {
		return err
	}
	small, err := w.s.smallBuckets(ctx, revisionOf(w.revision), compactedBy(w.floor))
	if err != nil {
		return err
	}
	small["lease"] = leases
	return w.db.Update(func(tx *bbolt.Tx) error {
		for bucket, pairs := range small {
			for _, p := range pairs {
				if err := tx.Bucket([]byte(bucket)).Put(p.key, p.value); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func makeBuckets(tx *bbolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// copyRows copies all rows up to the head. While the floor moves above the rows that were read, it also
// copies newer rows, and removes compacted rows from the file.
func (w *snapshotWriter) copyRows(ctx context.Context) error {
	head, err := w.s.log.Head(ctx)
	if err != nil {
		return err
	}
	w.floor = head.Floor
	kept, _, err := w.s.inForceAt(ctx, head.Floor, head.Floor)
	for errors.Is(err, changelog.ErrCompacted) {
		if head, err = w.s.log.Head(ctx); err != nil {
			return err
		}
		w.floor = head.Floor
		kept, _, err = w.s.inForceAt(ctx, head.Floor, head.Floor)
	}
	if err != nil {
		return err
	}
	for {
		err := w.s.eachRow(ctx, w.revision, head.Revision, func(r *changelog.Row) error {
			if r.Revision <= w.floor && (r.Deleted || !kept.has(r.Revision)) {
				return nil
			}
			return w.add(r)
		})
		if err != nil {
			return err
		}
		w.revision = head.Revision
		if head, err = w.s.log.Head(ctx); err != nil {
			return err
		}
		if head.Floor <= w.revision {
			if err := w.flush(); err != nil {
				return err
			}
			if head, err = w.compact(ctx, head); err != nil || head.Floor <= w.floor {
				return err
			}
		}
	}
}

// add adds a row to the file.
func (w *snapshotWriter) add(r *changelog.Row) error {
	p, err := revisionPair(r)
	if err != nil {
		return err
	}
	delete(w.leased, r.Key)
	if r.Lease != 0 && !r.Deleted {
		w.leased[r.Key] = r.Lease
	}
	w.batch = append(w.batch, p)
	w.bytes += len(p.key) + len(p.value)
	if len(w.batch) < snapshotRows && w.bytes < snapshotBytes {
		return nil
	}
	return w.flush()
}

func (w *snapshotWriter) flush() error {
	err := w.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(keyBucket))
		b.FillPercent = 0.9 // keys are appended in order
		for _, p := range w.batch {
			if err := b.Put(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
	w.batch, w.bytes = w.batch[:0], 0
	return err
}

// compact removes the rows that are superseded at the floor to which others have compacted meanwhile, and
// returns the head with that floor. If the floor is above all rows read, others compact faster than this
// reads, and nothing is removed.
func (w *snapshotWriter) compact(ctx context.Context, head changelog.Head) (changelog.Head, error) {
	for head.Floor > w.floor && head.Floor <= w.revision {
		kept, _, err := w.s.inForceAt(ctx, head.Floor, head.Floor)
		if errors.Is(err, changelog.ErrCompacted) { // the floor moved again
			head, err = w.s.log.Head(ctx)
			if err != nil {
				return head, err
			}
			continue
		}
		if err != nil {
			return head, err
		}
		w.floor = head.Floor
		if err := w.removeRows(kept); err != nil {
			return head, err
		}
	}
	return head, nil
}

// removeRows removes the rows up to the floor that are not in kept.
func (w *snapshotWriter) removeRows(kept inForce) error {
	end := revisionKey(w.floor+1, false)
	for from := []byte{}; from != nil; {
		err := w.db.Update(func(tx *bbolt.Tx) error {
			var remove [][]byte
			c := tx.Bucket([]byte(keyBucket)).Cursor()
			key, _ := c.Seek(from)
			for seen := 0; key != nil && string(key) < string(end) && seen < snapshotRows; seen++ {
				if id := idOfKey(key); len(key) == len(end)+1 || !kept.has(id) {
					remove = append(remove, slices.Clone(key))
				}
				key, _ = c.Next()
			}
			from = nil
			if key != nil && string(key) < string(end) {
				from = slices.Clone(key)
			}
			for _, key := range remove {
				if err := tx.Bucket([]byte(keyBucket)).Delete(key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leases returns the pairs of the present leases, and of leases that are gone but have keys in the snapshot:
// an etcd never deletes keys whose lease it does not know.
func (w *snapshotWriter) leases(ctx context.Context, before []changelog.Lease) (out []pair, err error) {
	leases, now, err := w.s.store.Keys().Leases(ctx, nil)
	if err != nil {
		return nil, err
	}
	known := make(map[int64]changelog.Lease, len(leases))
	for _, l := range leases {
		known[l.ID] = l
	}
	granted := make(map[int64]int64, len(before))
	for _, l := range before {
		granted[l.ID] = l.TTL
	}
	for _, id := range w.leased {
		if _, ok := known[id]; !ok {
			known[id] = changelog.Lease{ID: id, TTL: max(granted[id], minTTL), Expires: now}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		l := known[id]
		// 0 would mean the full granted time.
		out = append(out, leasePair(l, min(l.TTL, 1+secondsLeft(l, now))))
	}
	return out, nil
}
