package upstream

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Raw is everything in a snapshot of an etcd: each version of each key since the last compaction, as rows of
// a log of raw keys, with their revisions. Its methods have one caller at a time.
type Raw struct {
	snapshot *snapshotSource
	tx       *bbolt.Tx
	at       *bbolt.Cursor
	begun    bool
	living   map[string]int64 // by key, the id of the row that created it, as far as rows were read
}

// OpenRaw opens a file that etcdctl snapshot save or SaveSnapshot has written.
func OpenRaw(ctx context.Context, file string) (*Raw, error) {
	source, err := OpenSnapshot(ctx, file)
	if err != nil {
		return nil, err
	}
	r := &Raw{snapshot: source.(*snapshotSource), living: map[string]int64{}}
	if r.tx, err = r.snapshot.db.Begin(false); err != nil {
		r.snapshot.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r.at = r.tx.Bucket([]byte(keyBucket)).Cursor()
	return r, nil
}

// SaveSnapshot writes a snapshot of a running etcd.
func SaveSnapshot(ctx context.Context, e Etcd, to io.Writer) error {
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	from, err := c.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("take a snapshot of the etcd: %w", err)
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("take a snapshot of the etcd: %w", err)
	}
	return nil
}

// Close closes the file.
func (r *Raw) Close() error {
	_ = r.tx.Rollback() // it only reads
	return r.snapshot.Close()
}

// Revision returns the newest revision.
func (r *Raw) Revision() int64 { return r.snapshot.revision }

// Keys returns the number of keys.
func (r *Raw) Keys() int { return len(r.snapshot.newest) }

// Compacted returns the compacted revision; 0: there was no compaction.
func (r *Raw) Compacted() int64 {
	at := r.tx.Bucket([]byte(metaBucket)).Get([]byte("finishedCompactRev"))
	if len(at) < revisionSize {
		return 0
	}
	return revisionOf(at)
}

// Leases returns all leases, with their granted times to live.
func (r *Raw) Leases() (leases []changelog.Lease) {
	bucket := r.tx.Bucket([]byte(leaseBucket))
	if bucket == nil {
		return nil
	}
	_ = bucket.ForEach(func(_, value []byte) error { // the function returns no error
		if l := readLease(value); l.ID != 0 && l.TTL > 0 {
			leases = append(leases, l)
		}
		return nil
	})
	slices.SortFunc(leases, func(a, b changelog.Lease) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return leases
}

// readLease reads a leasepb.Lease; see leaseValue.
func readLease(value []byte) (l changelog.Lease) {
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 || kind != protowire.VarintType {
			return l
		}
		v, m := protowire.ConsumeVarint(value[n:])
		if m < 0 {
			return l
		}
		switch number {
		case 1:
			l.ID = int64(v)
		case 2:
			l.TTL = int64(v)
		}
		value = value[n+m:]
	}
	return l
}

// Page returns the next rows; none: the end.
func (r *Raw) Page(ctx context.Context) (rows []changelog.Row, err error) {
	size := 0
	for len(rows) < pagePairs && size < pageBytes {
		next := r.at.Next
		if !r.begun {
			r.begun, next = true, r.at.First
		}
		at, value := next()
		if at == nil {
			break
		}
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil { // this copies key and value
			return nil, fmt.Errorf("a key at revision %d cannot be read: %w", revisionOf(at), err)
		}
		if len(kv.Key) > changelog.MaxKeyBytes {
			return nil, fmt.Errorf("revision %d: its key has %d bytes, and plinth takes %d at most", revisionOf(at), len(kv.Key), changelog.MaxKeyBytes)
		}
		if row, ok := r.row(at, &kv); ok {
			rows = append(rows, row)
			size += len(row.Value)
		}
	}
	return rows, ctx.Err()
}

// row returns false for a deletion of a key that did not exist.
func (r *Raw) row(at []byte, kv *mvccpb.KeyValue) (changelog.Row, bool) {
	key := string(kv.Key)
	row := changelog.Row{Revision: changelog.FirstID(revisionOf(at)) + int64(binary.BigEndian.Uint64(at[9:revisionSize])), Key: key}
	created, there := r.living[key]
	if len(at) > revisionSize { // a tombstone
		delete(r.living, key)
		row.Deleted, row.CreateRevision, row.Value = true, created, []byte{}
		return row, there
	}
	switch {
	case kv.Version == 1:
		created = row.Revision
	case !there: // its earlier versions are compacted
		created = changelog.FirstID(kv.CreateRevision)
	}
	r.living[key] = created
	row.CreateRevision, row.Version, row.Lease, row.Value = created, kv.Version, kv.Lease, kv.Value
	if row.Value == nil {
		row.Value = []byte{}
	}
	return row, true
}
