package etcd

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	// retryWatch is the pause before the database is queried again after a failure.
	retryWatch = 500 * time.Millisecond
	// endGrace is how long a stream that ends waits for a client that does not read. After that, what still
	// waits for the client ends when the call returns.
	endGrace = time.Second
)

// watchServer is etcd's Watch service.
type watchServer struct {
	pb.UnsafeWatchServer
	s *Server
}

// Watch serves one stream of watches until its client or the Server ends it.
func (ws *watchServer) Watch(client pb.Watch_WatchServer) error {
	return newWatchStream(ws.s, client).serve()
}

// watchStream has the watches of one client's stream. One goroutine receives the client's requests, one for
// each watch waits for events, and one reports progress. All of them send, one at a time. Except for the one
// that catches up, none of them holds events while it waits for its turn, so that a client that does not read
// costs no memory: a watch is a position in the log.
type watchStream struct {
	s      *Server
	client pb.Watch_WatchServer
	ctx    context.Context // the context of all goroutines; its cause is the reason why the stream ends
	cancel context.CancelCauseFunc

	life  sync.Mutex
	ended bool // no more goroutines may start
	wg    sync.WaitGroup

	// reading is held by the watch that catches up, from reading its events until it has sent them. It is
	// locked before sending.
	reading sync.Mutex

	// sending guards what is sent to the client, the fields below, and the state of watches.
	sending sync.Mutex
	watches map[int64]*watch
	nextID  int64 // the next id for a watch that requests none
}

func newWatchStream(s *Server, client pb.Watch_WatchServer) *watchStream {
	st := &watchStream{s: s, client: client, watches: make(map[int64]*watch)}
	st.ctx, st.cancel = context.WithCancelCause(client.Context())
	return st
}

func (st *watchStream) serve() error {
	if requiresLeader(st.ctx) {
		if st.s.leaderless() {
			st.cancel(rpctypes.ErrGRPCNoLeader)
		}
		st.start(st.runLeader)
	}
	st.start(st.runProgress)
	go st.receive() // Recv may return only after this call has returned
	<-st.ctx.Done()
	st.end()
	return st.reason()
}

// start runs f in a goroutine of the stream, unless the stream has ended.
func (st *watchStream) start(f func()) {
	st.life.Lock()
	defer st.life.Unlock()
	if !st.ended {
		st.wg.Go(f)
	}
}

// end waits for the goroutines of the stream.
func (st *watchStream) end() {
	st.life.Lock()
	st.ended = true
	st.life.Unlock()
	done := make(chan struct{})
	go func() {
		st.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(endGrace):
	}
}

// reason returns the error that the client gets at the end.
func (st *watchStream) reason() error {
	err := context.Cause(st.ctx)
	if errors.Is(err, context.Canceled) {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// receive handles the client's requests, one after the other.
func (st *watchStream) receive() {
	for st.ctx.Err() == nil {
		r, err := st.client.Recv()
		if errors.Is(err, io.EOF) {
			return // the client sends no more requests, but still reads
		}
		if err != nil {
			st.cancel(err)
			return
		}
		st.handle(r)
	}
}

func (st *watchStream) handle(r *pb.WatchRequest) {
	switch r := r.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		if r.CreateRequest != nil {
			st.create(r.CreateRequest)
		}
	case *pb.WatchRequest_CancelRequest:
		if r.CancelRequest != nil {
			st.cancelWatch(r.CancelRequest.WatchId)
		}
	case *pb.WatchRequest_ProgressRequest:
		if r.ProgressRequest != nil {
			st.progressAll()
		}
	}
}

// sync waits until this Server has read everything that was written before the call. It returns false if the
// stream ends first.
func (st *watchStream) sync() bool {
	for {
		_, err := st.s.store.Sync(st.ctx)
		switch {
		case err == nil:
			return true
		case errors.Is(err, changelog.ErrClosed):
			st.cancel(toStatus(err))
		}
		select {
		case <-time.After(retryWatch):
		case <-st.ctx.Done():
			return false
		}
	}
}

// send sends a response. The caller must hold sending.
func (st *watchStream) send(r *pb.WatchResponse) {
	if st.ctx.Err() != nil {
		return
	}
	if err := st.client.Send(r); err != nil {
		st.cancel(err)
	}
}

// cancelWatch ends a watch. There is no answer if no watch has this id.
func (st *watchStream) cancelWatch(id int64) {
	st.sending.Lock()
	defer st.sending.Unlock()
	w := st.watches[id]
	if w == nil {
		return
	}
	delete(st.watches, id)
	w.gone = true
	w.cancel()
	st.send(&pb.WatchResponse{Header: st.s.header(st.s.revision()), WatchId: id, Canceled: true})
}
