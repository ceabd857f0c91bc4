package etcd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// An etcd's file has buckets of pairs. This file computes, for hashes and snapshots, what the file of an etcd
// with the same history would contain.

// buckets are the buckets of etcd 3.7, in the order of the file.
var buckets = []string{"alarm", "auth", "authRoles", "authUsers", "cluster", keyBucket, "lease", "members", "members_removed", "meta"}

const keyBucket = "key"

// Names in the bucket "meta".
const (
	metaIndex     = "consistent_index"
	metaTerm      = "term"
	metaStorage   = "storageVersion"
	metaConfState = "confState"
	metaScheduled = "scheduledCompactRev"
	metaFinished  = "finishedCompactRev"
)

// pair is a key and its value in a bucket.
type pair struct{ key, value []byte }

// revisionKey returns the key, in the bucket "key", of the row with this id.
func revisionKey(id int64, tombstone bool) []byte {
	revision, sub := changelog.Split(id)
	key := make([]byte, 0, 18)
	key = binary.BigEndian.AppendUint64(key, uint64(revision))
	key = append(key, '_')
	key = binary.BigEndian.AppendUint64(key, uint64(sub))
	if tombstone {
		key = append(key, 't')
	}
	return key
}

// idOfKey returns the id of a key that revisionKey made.
func idOfKey(key []byte) int64 {
	return changelog.FirstID(int64(binary.BigEndian.Uint64(key))) + int64(binary.BigEndian.Uint64(key[9:]))
}

// revisionPair returns the pair of a row in the bucket "key".
func revisionPair(r *changelog.Row) (pair, error) {
	kv := &mvccpb.KeyValue{Key: []byte(r.Key)}
	if !r.Deleted {
		kv.CreateRevision, _ = changelog.Split(r.CreateRevision)
		kv.ModRevision, _ = changelog.Split(r.Revision)
		kv.Version, kv.Value, kv.Lease = r.Version, r.Value, r.Lease
	}
	value, err := proto.Marshal(kv)
	return pair{revisionKey(r.Revision, r.Deleted), value}, err
}

// leasePair returns the pair of a lease in the bucket "lease". The value is a leasepb.Lease.
func leasePair(l changelog.Lease, remaining int64) pair {
	var value []byte
	for i, n := range []int64{l.ID, l.TTL, remaining} {
		if n != 0 {
			value = protowire.AppendTag(value, protowire.Number(i+1), protowire.VarintType)
			value = protowire.AppendVarint(value, uint64(n))
		}
	}
	return pair{uint64Bytes(uint64(l.ID)), value}
}

func uint64Bytes(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// storedMember and storedConfState are stored as JSON in an etcd's file.
type storedMember struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	Name       string   `json:"name,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

type storedConfState struct {
	Voters    []uint64 `json:"voters"`
	AutoLeave bool     `json:"auto_leave"`
}

// smallBuckets returns the contents of all buckets except "key" and "lease", at a revision and with a
// compacted revision; 0: there is none.
func (s *Server) smallBuckets(ctx context.Context, revision, compacted int64) (map[string][]pair, error) {
	members, err := s.members(ctx)
	if err != nil {
		return nil, err
	}
	alarms, err := s.readAlarms(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]pair{
		"auth":    {{[]byte("authRevision"), uint64Bytes(authRevision)}},
		"cluster": {{[]byte("clusterVersion"), []byte(clusterVersion)}},
		"meta": {
			{[]byte(metaIndex), uint64Bytes(uint64(revision))},
			{[]byte(metaStorage), []byte(storageVersion)},
			{[]byte(metaTerm), uint64Bytes(raftTerm)},
		},
	}
	if compacted > 0 {
		at := revisionKey(changelog.FirstID(compacted), false)
		out["meta"] = append(out["meta"], pair{[]byte(metaScheduled), at}, pair{[]byte(metaFinished), at})
	}
	voters := storedConfState{}
	for _, m := range members {
		value, err := json.Marshal(storedMember{m.ID, []string{}, m.Name, m.ClientURLs})
		if err != nil {
			return nil, err
		}
		out["members"] = append(out["members"], pair{fmt.Appendf(nil, "%x", m.ID), value})
		voters.Voters = append(voters.Voters, m.ID)
	}
	value, err := json.Marshal(voters)
	if err != nil {
		return nil, err
	}
	out["meta"] = append(out["meta"], pair{[]byte(metaConfState), value})
	for _, a := range alarms {
		key, err := proto.Marshal(a)
		if err != nil {
			return nil, err
		}
		out["alarm"] = append(out["alarm"], pair{key, nil})
	}
	for _, pairs := range out {
		slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(string(a.key), string(b.key)) })
	}
	return out, nil
}

// eachKey calls f for the rows in force at an id, in order of keys and without values.
func (s *Server) eachKey(ctx context.Context, at int64, f func(*changelog.Row)) error {
	const page = 2048
	for from := ""; ; {
		rows, err := s.log.Keys(ctx, from, changelog.End, at, page)
		if err != nil {
			return err
		}
		for i := range rows {
			f(&rows[i])
		}
		if len(rows) < page {
			return nil
		}
		from = rows[len(rows)-1].Key + "\x00"
	}
}

// eachRow calls f for the rows after an id up to another, in order of ids. Rows superseded at the floor may
// be missing.
func (s *Server) eachRow(ctx context.Context, after, through int64, f func(*changelog.Row) error) error {
	const most, bytes = 1024, 4 << 20
	for limit := 64; after < through; {
		rows, err := s.log.Rows(ctx, after, limit)
		for errors.Is(err, changelog.ErrCompacted) { // the row that identifies the log is gone; see Expect
			if _, err = s.store.Sync(ctx); err == nil {
				rows, err = s.log.Rows(ctx, after, limit)
			}
		}
		if err != nil {
			return err
		}
		size := 0
		for i := range rows {
			if rows[i].Revision > through {
				return nil
			}
			if err := f(&rows[i]); err != nil {
				return err
			}
			size += len(rows[i].Key) + len(rows[i].Value)
		}
		if len(rows) < limit {
			return nil
		}
		after = rows[len(rows)-1].Revision
		limit = max(1, min(2*limit, most, bytes/(size/len(rows)+1)))
	}
	return nil
}

// inForce has the ids of the rows up to a bound that are in force at an id.
type inForce []int64

// has reports whether the row with the id is in force. The id must not be above the bound.
func (k inForce) has(id int64) bool {
	_, ok := slices.BinarySearch(k, id)
	return ok
}

// inForceAt returns which rows up to bound are in force at an id, and whether there are any rows in force at
// all.
func (s *Server) inForceAt(ctx context.Context, at, bound int64) (k inForce, some bool, err error) {
	err = s.eachKey(ctx, at, func(r *changelog.Row) {
		some = true
		if r.Revision <= bound {
			k = append(k, r.Revision)
		}
	})
	slices.Sort(k)
	return k, some, err
}
