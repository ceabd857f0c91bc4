package etcd

import (
	"context"
	"errors"
	"math"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// noWatch is the id in answers that belong to no watch.
const noWatch = -1

var (
	errWatchRange = errors.New("mvcc: watcher range is empty")
	errWatchID    = errors.New("mvcc: duplicate watch ID provided on the WatchStream")
)

// create handles a request for a watch, and starts it.
func (st *watchStream) create(r *pb.WatchCreateRequest) {
	if r.StartRevision < 0 {
		st.refuse(rpctypes.ErrCompacted)
		return
	}
	from, to, err := watchedRange(r.Key, r.RangeEnd)
	if err != nil {
		st.refuse(err)
		return
	}
	if r.StartRevision == 0 && !st.sync() {
		return
	}
	st.sending.Lock()
	defer st.sending.Unlock()
	id, err := st.idFor(r.WatchId)
	if err != nil {
		st.sendRefusal(err)
		return
	}
	st.open(newWatch(st, id, from, to, r))
}

// open registers w and answers the client before w sends anything. The caller must hold sending.
func (st *watchStream) open(w *watch) {
	revision := st.s.revision()
	if w.asked == 0 {
		w.begin(revision+1, revision)
	} else {
		w.begin(w.asked, revision)
	}
	if st.ctx.Err() != nil {
		return
	}
	st.watches[w.id] = w
	st.send(&pb.WatchResponse{Header: st.s.header(revision), WatchId: w.id, Created: true})
	st.start(w.run)
}

// idFor returns the id of a new watch: the requested one, or for 0 an unused one.
func (st *watchStream) idFor(asked int64) (int64, error) {
	if asked != 0 {
		if st.watches[asked] != nil {
			return 0, errWatchID
		}
		return asked, nil
	}
	for st.watches[st.nextID] != nil {
		st.nextID++
	}
	st.nextID++
	return st.nextID - 1, nil
}

func (st *watchStream) refuse(reason error) {
	st.sending.Lock()
	defer st.sending.Unlock()
	st.sendRefusal(reason)
}

// sendRefusal answers that a watch could not be created. The caller must hold sending.
func (st *watchStream) sendRefusal(reason error) {
	st.send(&pb.WatchResponse{
		Header:       st.s.header(st.s.revision()),
		WatchId:      noWatch,
		Created:      true,
		Canceled:     true,
		CancelReason: reason.Error(),
	})
}

// watchedRange returns the keys from <= key < to of a request. An empty key is the least key. An empty end
// means the key alone, and a zero byte means all following keys.
func watchedRange(key, end []byte) (from, to string, err error) {
	if len(key) == 0 {
		key = []byte{0}
	}
	from, to = string(key), string(end)
	switch {
	case to == "":
		return from, from + "\x00", nil
	case to == "\x00":
		return from, changelog.End, nil
	case from >= to:
		return "", "", errWatchRange
	}
	return from, to, nil
}

// newWatch returns the watch that r requests. begin sets its position.
func newWatch(st *watchStream, id int64, from, to string, r *pb.WatchCreateRequest) *watch {
	w := &watch{
		st: st, id: id, from: from, to: to,
		asked:    r.StartRevision,
		prevKV:   r.PrevKv,
		fragment: r.Fragment,
		progress: r.ProgressNotify,
		quiet:    true,
	}
	for _, f := range r.Filters {
		w.noPut = w.noPut || f == pb.WatchCreateRequest_NOPUT
		w.noDelete = w.noDelete || f == pb.WatchCreateRequest_NODELETE
	}
	w.ctx, w.cancel = context.WithCancel(st.ctx)
	return w
}

// begin sets the position of w so that it starts with the changes of revision start. current is the newest
// revision. If start is compacted, the watch finds that out when it reads.
func (w *watch) begin(start, current int64) {
	w.behind = start <= current
	after := before(start)
	floor, _ := changelog.Split(w.st.s.store.Floor())
	if start == floor {
		// The changes of the compacted revision that are still in force are delivered, too.
		w.floor, after = floor, changelog.LastID(floor)
	}
	w.watcher, w.failed = w.st.s.store.Keys().WatchRange(w.from, w.to, after)
}

// before returns the greatest id that is below revision.
func before(revision int64) int64 {
	if revision > math.MaxInt64>>changelog.SubBits {
		return math.MaxInt64 // never reached
	}
	return changelog.FirstID(revision) - 1
}
