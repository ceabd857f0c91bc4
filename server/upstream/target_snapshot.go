package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

// ErrExists means that the target exists already.
var ErrExists = errors.New("it exists already")

// snapshotTarget writes a file like that of etcdctl snapshot save. Keys keep their revisions of the log. All
// these revisions are compacted, and the newest revision is one above the log's, so that clients list again:
// otherwise they would not notice that plinth's own objects are gone. That newest revision has the tombstone
// of an unused key, because etcdutl takes the last change in a file for its revision.
type snapshotTarget struct {
	file   string
	temp   string // the file until Finish; empty: there is none
	db     *bbolt.DB
	keys   []keyValue // keys to write
	bytes  int        // size of keys
	leases *eventLeases
	made   [][]byte // leases, by their number, which begins with 1
	noted  int      // how many of made are in the file
}

// etcdBuckets are the buckets that an etcd expects in its file.
var etcdBuckets = []string{keyBucket, metaBucket, leaseBucket, "alarm", "cluster", "members", "members_removed", "auth", "authUsers", "authRoles"}

const leaseBucket = "lease"

// CreateSnapshot returns a target that creates a file for etcdutl snapshot restore.
func CreateSnapshot(file string) (Target, error) {
	if _, err := os.Lstat(file); err == nil {
		return nil, fmt.Errorf("%s: %w", file, ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part-*")
	if err != nil {
		return nil, err
	}
	t := &snapshotTarget{file: file, temp: f.Name()}
	t.leases = newEventLeases(t.grant)
	err = f.Close()
	if err == nil {
		t.db, err = bbolt.Open(t.temp, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	}
	if err == nil {
		err = t.db.Update(begin)
	}
	if err != nil {
		return nil, errors.Join(err, t.Abandon(context.Background()))
	}
	return t, nil
}

// begin creates the buckets, and the entries without which an etcd from 3.5 on takes the file for one of an
// older etcd. Restoring the file replaces their values.
func begin(tx *bbolt.Tx) error {
	for _, name := range etcdBuckets {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	one := binary.BigEndian.AppendUint64(nil, 1)
	meta := tx.Bucket([]byte(metaBucket))
	return errors.Join(meta.Put([]byte("consistent_index"), one), meta.Put([]byte("term"), one))
}

// revisionBytes returns the key of a revision in the bucket "key", which is also the form of the compacted
// revision.
func revisionBytes(revision int64) []byte {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(revision)), '_')
	return binary.BigEndian.AppendUint64(b, 0)
}

// keyValue is an entry of the bucket "key".
type keyValue struct {
	revision int64
	value    []byte
}

// transactionBytes bounds the memory for one transaction. A large transaction is fast, because keys do not
// come in the order of revisions, so that each transaction changes nearly all existing pages.
const transactionBytes = 32 << 20

func (t *snapshotTarget) Put(ctx context.Context, items []Item) error {
	for _, item := range items {
		lease, err := t.leases.of(ctx, item.Expires)
		if err != nil {
			return err
		}
		value, err := marshal(item, lease)
		if err != nil {
			return err
		}
		t.keys = append(t.keys, keyValue{item.Revision, value})
		t.bytes += len(value)
	}
	if t.bytes < transactionBytes {
		return nil
	}
	return t.flush()
}

func marshal(item Item, lease int64) ([]byte, error) {
	kv := &mvccpb.KeyValue{
		Key: []byte(item.Key), Value: item.Value, Lease: lease,
		ModRevision: item.Revision, CreateRevision: item.CreateRevision, Version: 1,
	}
	if kv.CreateRevision != kv.ModRevision {
		kv.Version = 2 // or more: the log does not count versions
	}
	return proto.Marshal(kv)
}

// flush writes the collected keys in the order of the bucket, without which bbolt is slow.
func (t *snapshotTarget) flush() error {
	slices.SortFunc(t.keys, func(a, b keyValue) int { return cmp.Compare(a.revision, b.revision) })
	err := t.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte(keyBucket))
		for _, kv := range t.keys {
			if err := bucket.Put(revisionBytes(kv.revision), kv.value); err != nil {
				return err
			}
		}
		return t.putLeases(tx)
	})
	t.keys, t.bytes = nil, 0
	if err != nil {
		return fmt.Errorf("write %s: %w", t.file, err)
	}
	return nil
}

func (t *snapshotTarget) grant(_ context.Context, seconds int64) (int64, error) {
	id := int64(len(t.made) + 1)
	t.made = append(t.made, leaseValue(id, seconds))
	return id, nil
}

// putLeases writes the leases that were made since the last call.
func (t *snapshotTarget) putLeases(tx *bbolt.Tx) error {
	bucket := tx.Bucket([]byte(leaseBucket))
	for ; t.noted < len(t.made); t.noted++ {
		if err := bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(t.noted+1)), t.made[t.noted]); err != nil {
			return err
		}
	}
	return nil
}

// leaseValue returns a leasepb.Lease, whose package is part of etcd's server: field 1 is ID, field 2 is TTL.
func leaseValue(id, seconds int64) []byte {
	b := binary.AppendUvarint([]byte{1 << 3}, uint64(id))
	return binary.AppendUvarint(append(b, 2<<3), uint64(seconds))
}

func (t *snapshotTarget) Finish(_ context.Context, head int64) (int64, error) {
	newest := head + 1
	if err := t.flush(); err != nil {
		return 0, err
	}
	if err := t.finish(newest); err != nil {
		return 0, fmt.Errorf("write %s: %w", t.file, err)
	}
	return newest, nil
}

func (t *snapshotTarget) finish(newest int64) error {
	if err := t.db.Update(func(tx *bbolt.Tx) error { return compacted(tx, newest) }); err != nil {
		return err
	}
	if err := t.db.Close(); err != nil {
		return err
	}
	f, err := seal(t.temp)
	if err != nil {
		return err
	}
	if err := atomicfile.Commit(f, t.file); err != nil {
		return err
	}
	t.temp = ""
	return nil
}

// lastKey is the key of the tombstone at the newest revision.
const lastKey = "plinth/exported"

// compacted records that everything below a revision is compacted, and writes that revision, which is the
// newest.
func compacted(tx *bbolt.Tx, revision int64) error {
	last := &mvccpb.KeyValue{Key: []byte(lastKey), ModRevision: revision}
	value, err := proto.Marshal(last)
	if err != nil {
		return err
	}
	if err := tx.Bucket([]byte(keyBucket)).Put(append(revisionBytes(revision), 't'), value); err != nil {
		return err
	}
	for _, name := range compactions {
		if err := tx.Bucket([]byte(metaBucket)).Put([]byte(name), revisionBytes(revision)); err != nil {
			return err
		}
	}
	return nil
}

// seal appends the checksum of a snapshot.
func seal(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, f); err == nil {
		_, err = f.Write(sum.Sum(nil))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (t *snapshotTarget) Abandon(context.Context) error {
	if t.temp == "" {
		return nil
	}
	var err error
	if t.db != nil {
		err = t.db.Close()
	}
	err = errors.Join(err, os.Remove(t.temp))
	t.temp = ""
	return err
}
