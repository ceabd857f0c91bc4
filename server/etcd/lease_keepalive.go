package etcd

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	renewMost    = 1000             // the most leases in one statement
	renewTimeout = 15 * time.Second // the longest time for one statement
)

// LeaseKeepAlive renews the leases that a client names on the stream, and answers in the same order. The
// answer for a lease that is gone has a TTL of 0.
func (l leaseService) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx := stream.Context()
	ids, failed := make(chan int64, renewMost), make(chan error, 1)
	go receiveKeepAlives(stream, ids, failed) // it ends with the stream, soon after this method
	for id := range ids {
		batch := drain(ids, id)
		// The header's revision is from before the renewal, so that no client sees a lease renewed at a
		// revision at which it was already revoked.
		header := l.s.header(l.s.revision())
		ttls, err := l.s.renew(ctx, batch)
		if err != nil {
			return toStatus(err)
		}
		for _, id := range batch {
			if err := stream.Send(&pb.LeaseKeepAliveResponse{Header: header, ID: id, TTL: ttls[id]}); err != nil {
				return err
			}
		}
	}
	if err := <-failed; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// receiveKeepAlives sends the ids of the requests to ids, closes ids after the last one, and then sends the
// reason to failed.
func receiveKeepAlives(stream pb.Lease_LeaseKeepAliveServer, ids chan<- int64, failed chan<- error) {
	defer close(ids)
	for {
		r, err := stream.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case ids <- r.ID:
		case <-stream.Context().Done():
			failed <- stream.Context().Err()
			return
		}
	}
}

// drain returns first and the ids that have arrived after it.
func drain(ids <-chan int64, first int64) []int64 {
	batch := []int64{first}
	for len(batch) < renewMost {
		select {
		case id, ok := <-ids:
			if !ok {
				return batch
			}
			batch = append(batch, id)
		default:
			return batch
		}
	}
	return batch
}

// renewals collects the leases that streams want to renew while a statement runs, for the next statement.
type renewals struct {
	running chan struct{} // holds a token while a statement runs

	mu   sync.Mutex
	open *renewal // accepts more ids; nil if there is none
}

// renewal is one statement. The caller that creates it runs it.
type renewal struct {
	ids  []int64
	done chan struct{} // closed when the rest is set
	ttls map[int64]int64
	err  error
}

func (r *renewals) init() { r.running = make(chan struct{}, 1) }

// join adds ids to the next statement. If made, the caller must run it.
func (r *renewals) join(ids []int64) (n *renewal, made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil || len(r.open.ids)+len(ids) > renewMost {
		r.open, made = &renewal{done: make(chan struct{})}, true
	}
	r.open.ids = append(r.open.ids, ids...)
	return r.open, made
}

// begin waits until no other statement runs, and closes n to further ids.
func (r *renewals) begin(n *renewal) {
	r.running <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == n {
		r.open = nil
	}
}

// renew renews leases together with those of other callers. It returns the time to live of each lease that
// exists.
func (s *Server) renew(ctx context.Context, ids []int64) (ttls map[int64]int64, err error) {
	n, made := s.renewals.join(ids)
	if made {
		s.renewals.begin(n)
		// Other callers wait for the statement, too, so it must not end with this caller's context.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
		n.ttls, n.err = s.renewTogether(ctx, n.ids)
		cancel()
		<-s.renewals.running
		close(n.done)
	}
	select {
	case <-n.done:
		return n.ttls, n.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renewTogether renews leases in one statement. It revokes expired ones before it returns, because a client
// that learns that a lease is gone must no longer see its keys.
func (s *Server) renewTogether(ctx context.Context, ids []int64) (ttls map[int64]int64, err error) {
	if err := s.ensureBeat(ctx); err != nil {
		return nil, err
	}
	renewed, err := s.store.Keys().Renew(ctx, ids)
	if err != nil {
		return nil, err
	}
	ttls = make(map[int64]int64, len(renewed))
	for _, l := range renewed {
		ttls[l.ID] = l.TTL
	}
	s.metrics.renewed.Add(float64(len(renewed)))
	var gone []int64
	for _, id := range ids {
		if _, ok := ttls[id]; !ok {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return ttls, nil
	}
	expired, _, err := s.store.Keys().Leases(ctx, gone)
	if err != nil {
		return nil, err
	}
	gone = gone[:0]
	for _, l := range expired {
		gone = append(gone, l.ID)
	}
	return ttls, s.expire(ctx, gone)
}
