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

// ErrExists says that a target is there already.
var ErrExists = errors.New("it exists already")

// snapshotTarget writes a file like that of etcdctl snapshot save. Keys have the revisions that they
// have in the log. All of these are compacted, and the newest is one above the log's, so that clients
// list anew: they do not see otherwise that plinth's own objects have gone. That one has the tombstone of a key
// that nobody has, because etcdutl takes the last change in a file for its revision.
type snapshotTarget struct {
	file   string
	temp   string // what is written until Finish; empty: nothing is there
	db     *bbolt.DB
	keys   []keyValue // that are to be written
	bytes  int        // of keys
	leases *eventLeases
	made   [][]byte // leases, by their number; the first has number 1
	noted  int      // of made, which the file has
}

// etcdBuckets are the names that an etcd expects in its file.
var etcdBuckets = []string{keyBucket, metaBucket, leaseBucket, "alarm", "cluster", "members", "members_removed", "auth", "authUsers", "authRoles"}

const leaseBucket = "lease"

// CreateSnapshot returns a target that makes a file, which etcdutl snapshot restore takes.
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

// begin makes the buckets, and the notes without which an etcd from 3.5 on takes a file for one of an
// older etcd. To restore the file replaces their values.
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

// revisionBytes is a key of the bucket "key", and how a compaction is noted.
func revisionBytes(revision int64) []byte {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(revision)), '_')
	return binary.BigEndian.AppendUint64(b, 0)
}

// keyValue is an entry of the bucket "key".
type keyValue struct {
	revision int64
	value    []byte
}

// transactionBytes bounds what is kept in memory for one transaction. A large one is quick, because
// keys do not come in the order of revisions: each transaction changes nearly all pages that there are.
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
		kv.Version = 2 // or more: nobody counts in the log
	}
	return proto.Marshal(kv)
}

// flush writes what there is to write, in the order of the bucket, without which bbolt is slow.
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

// putLeases writes the leases that were made since.
func (t *snapshotTarget) putLeases(tx *bbolt.Tx) error {
	bucket := tx.Bucket([]byte(leaseBucket))
	for ; t.noted < len(t.made); t.noted++ {
		if err := bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(t.noted+1)), t.made[t.noted]); err != nil {
			return err
		}
	}
	return nil
}

// leaseValue is a leasepb.Lease, whose package is a part of etcd's server: the fields ID, 1, and TTL, 2.
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

// compacted notes that nothing below a revision can be read, which is the newest, and writes that one.
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

// seal appends the sum that a snapshot ends with.
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
