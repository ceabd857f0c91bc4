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

// progressAll answers a request for the progress of all watches of the stream. As with etcd, there
// is no answer if one of them is behind or starts in the future, or if there is none.
func (st *watchStream) progressAll() {
	if !st.sync() {
		return
	}
	st.sending.Lock()
	defer st.sending.Unlock()
	revision := st.s.revision()
	for _, w := range st.watches {
		if !w.reach(revision) {
			return
		}
	}
	if len(st.watches) > 0 {
		st.sendProgress(noWatch, revision)
	}
}

// reach sends what there is, and says whether that was everything through revision. The caller
// holds sending.
func (w *watch) reach(revision int64) bool {
	if w.behind || w.lost || w.asked > revision {
		return false
	}
	w.follow()
	return !w.behind && !w.lost && w.through >= revision
}

func (st *watchStream) sendProgress(id, revision int64) {
	st.send(&pb.WatchResponse{Header: st.s.header(revision), WatchId: id})
}

// runProgress tells, at intervals, how far those watches are that have asked for it and are quiet.
func (st *watchStream) runProgress() {
	interval := st.s.o.WatchProgressInterval
	// Streams that began together, as after a restart, are told at different times.
	tick := time.NewTicker(interval + rand.N(interval/10))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			st.tellQuiet()
		case <-st.ctx.Done():
			return
		}
	}
}

func (st *watchStream) tellQuiet() {
	st.sending.Lock()
	defer st.sending.Unlock()
	revision := st.s.revision()
	for id, w := range st.watches {
		if !w.progress {
			continue
		}
		if w.quiet && w.reach(revision) {
			st.sendProgress(id, revision)
		}
		w.quiet = true
	}
}

const (
	// leaderEvery and leaderMisses say how long the database must be away until streams end that
	// require a leader. They are those of a member of etcd with its defaults.
	leaderEvery  = time.Second
	leaderMisses = 3
)

// requiresLeader says whether a client wants its stream to end when no progress is possible.
func requiresLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	asked := md.Get(rpctypes.MetadataRequireLeaderKey)
	return len(asked) > 0 && asked[0] == rpctypes.MetadataHasLeader
}

// leaderless says that nothing can be written now, nor read that is surely the newest. It is what
// a client of etcd knows as the lack of a leader.
func (s *Server) leaderless() bool {
	err := s.store.Healthy()
	return err != nil && !errors.Is(err, changelog.ErrFull)
}

// runLeader ends the stream when there is no leader for a while.
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
