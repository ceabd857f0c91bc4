package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"
)

// progressAll answers a request for the progress of all watches of the stream. As in etcd, there is no answer
// if one of them is behind or starts in the future, or if there are no watches.
func (st *watchStream) progressAll() {
	if !st.sync() {
		return
	}
	st.sending.Lock()
	defer st.sending.Unlock()
	revision := st.s.revision()
	for _, w := range st.watches {
		if !w.catchUpTo(revision) {
			return
		}
	}
	if len(st.watches) > 0 {
		st.sendProgress(noWatch, revision)
	}
}

// catchUpTo sends the present events, and reports whether these were all events through revision. The caller
// must hold sending.
func (w *watch) catchUpTo(revision int64) bool {
	if w.behind || w.lost || w.asked > revision {
		return false
	}
	w.follow()
	return !w.behind && !w.lost && w.through >= revision
}

func (st *watchStream) sendProgress(id, revision int64) {
	st.send(&pb.WatchResponse{Header: st.s.header(revision), WatchId: id})
}

// runProgress sends, at intervals, the progress of those idle watches that have requested it.
func (st *watchStream) runProgress() {
	interval := st.s.o.WatchProgressInterval
	// The intervals differ, so that streams that began together, as after a restart, are not served at the
	// same time.
	tick := time.NewTicker(interval + rand.N(interval/10))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			st.sendQuietProgress()
		case <-st.ctx.Done():
			return
		}
	}
}

func (st *watchStream) sendQuietProgress() {
	st.sending.Lock()
	defer st.sending.Unlock()
	revision := st.s.revision()
	for id, w := range st.watches {
		if !w.progress {
			continue
		}
		if w.quiet && w.catchUpTo(revision) {
			st.sendProgress(id, revision)
		}
		w.quiet = true
	}
}

const (
	// leaderEvery and leaderMisses determine how long the database must be unavailable until streams end that
	// require a leader. The values are those of an etcd with default settings.
	leaderEvery  = time.Second
	leaderMisses = 3
)

// requiresLeader reports whether a client wants its stream to end when there is no leader.
func requiresLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	asked := md.Get(rpctypes.MetadataRequireLeaderKey)
	return len(asked) > 0 && asked[0] == rpctypes.MetadataHasLeader
}

// leaderless reports whether nothing can be written now, and no read is surely the newest. To a client of
// etcd, that is the lack of a leader.
func (s *Server) leaderless() bool {
	err := s.store.Healthy()
	return err != nil && !errors.Is(err, changelog.ErrFull)
}

// runLeader ends the stream when there has been no leader for a while.
func (st *watchStream) runLeader() {
	tick := time.NewTicker(leaderEvery)
	defer tick.Stop()
	for misses := 0; misses < leaderMisses; {
		select {
		case <-tick.C:
		case <-st.ctx.Done():
			return
		}
		if misses++; !st.s.leaderless() {
			misses = 0
		}
	}
	st.cancel(rpctypes.ErrGRPCNoLeader)
}
