package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// Names in etcd's file. A key in the bucket "key" is a revision, an underscore, the number of the change
// within the revision, and a t for a tombstone.
const (
	keyBucket    = "key"
	metaBucket   = "meta"
	storage      = "storageVersion"
	revisionSize = 17
)

var compactions = []string{"scheduledCompactRev", "finishedCompactRev"}

// snapshotSource reads a snapshot of an etcd.
type snapshotSource struct {
	db       *bbolt.DB
	revision int64
	newest   map[string][revisionSize]byte // the newest change of each existing key
}

// OpenSnapshot returns the keys in a file of etcdctl snapshot save.
func OpenSnapshot(ctx context.Context, file string) (_ Source, err error) {
	if err := checkSum(file); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer func() { // bbolt panics if the file is not one of its databases
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%s: it is damaged: %v", file, reason)
		}
	}()
	db, err := bbolt.Open(file, 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %v", file, errNoSnapshot, err)
	}
	s := &snapshotSource{db: db, newest: map[string][revisionSize]byte{}}
	if err := db.View(func(tx *bbolt.Tx) error { return s.index(ctx, tx) }); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

var (
	errNoSnapshot = errors.New("it is no snapshot of an etcd; write the file of etcdctl snapshot save")
	errNoSum      = errors.New("it has no checksum at its end: it is cut off, or was copied from a data directory of etcd; make a snapshot with etcdctl snapshot save")
	errSum        = errors.New("its checksum is wrong: it is damaged or cut off; make another snapshot with etcdctl snapshot save")
)

// checkSum checks the sum at the end of a snapshot. A file without it consists of whole pages.
func checkSum(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const smallestPage = 512
	size := info.Size() - sha256.Size
	if info.IsDir() || info.Size() == 0 {
		return errNoSnapshot
	}
	if size <= 0 || size%smallestPage != 0 {
		return errNoSum
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, size); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(sum.Sum(nil), want) {
		err = errSum
	}
	return err
}

// index finds the newest change of each key, and the newest revision.
func (s *snapshotSource) index(ctx context.Context, tx *bbolt.Tx) error {
	keys := tx.Bucket([]byte(keyBucket))
	if keys == nil {
		return errNoSnapshot
	}
	if err := s.readMeta(tx.Bucket([]byte(metaBucket))); err != nil {
		return err
	}
	n := 0
	return keys.ForEach(func(at, value []byte) error {
		if n++; n%10_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(at) < revisionSize {
			return errNoSnapshot
		}
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil {
			return fmt.Errorf("a key at revision %d cannot be read: %w", revisionOf(at), err)
		}
		s.revision = max(s.revision, revisionOf(at))
		if len(at) > revisionSize {
			delete(s.newest, string(kv.Key))
		} else {
			s.newest[string(kv.Key)] = [revisionSize]byte(at)
		}
		return nil
	})
}

func revisionOf(at []byte) int64 { return int64(binary.BigEndian.Uint64(at)) }

// readMeta reads the compacted revision and the lower bound of the newest one, and refuses files of an etcd
// with another major version.
func (s *snapshotSource) readMeta(meta *bbolt.Bucket) error {
	if meta == nil {
		return errNoSnapshot
	}
	if version := string(meta.Get([]byte(storage))); version != "" && !strings.HasPrefix(version, "3.") {
		return fmt.Errorf("it is a snapshot of etcd %s, and plinth reads those of etcd 3", version)
	}
	for _, name := range compactions {
		if at := meta.Get([]byte(name)); len(at) >= revisionSize {
			s.revision = max(s.revision, revisionOf(at))
		}
	}
	return nil
}

func (s *snapshotSource) Revision() int64 { return s.revision }

func (s *snapshotSource) Close() error { return s.db.Close() }

func (s *snapshotSource) Each(ctx context.Context, prefix string, f func([]Pair) error) error {
	out := pages{f: f}
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(keyBucket)).ForEach(func(at, value []byte) error {
			if len(at) > revisionSize {
				return nil
			}
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(value, &kv); err != nil { // this copies key and value
				return err
			}
			newest, there := s.newest[string(kv.Key)]
			if !there || !slices.Equal(newest[:], at) || !strings.HasPrefix(string(kv.Key), prefix) {
				return nil
			}
			return out.add(Pair{Key: string(kv.Key), Value: kv.Value, Revision: kv.ModRevision})
		})
	})
	if err != nil {
		return err
	}
	return out.flush()
}
