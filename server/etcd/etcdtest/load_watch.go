package etcdtest

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// watchKind is how a client of the load watches.
type watchKind struct {
	*Watch
	restless bool // it goes on at any member every second or so
	progress bool // it wants to be told progress without asking
}

// watches are those of the load.
func (l *Load) watches() (all []watchKind) {
	add := func(name, from, end string, before, restless, progress bool) {
		w := l.history.AddWatch(&Watch{Name: name, From: from, End: end, Before: before})
		all = append(all, watchKind{w, restless, progress})
	}
	add("all", "/registry/", "/registry0", true, false, false)
	add("all, restless", "/registry/", "/registry0", false, true, false)
	add("pods", pods, pods[:len(pods)-1]+"0", true, false, true)
	add("pods, restless", pods, pods[:len(pods)-1]+"0", true, true, true)
	add("events", events, events[:len(events)-1]+"0", false, false, true)
	add("one pod", pods+"default/p1", pods+"default/p1\x00", false, true, false)
	return all
}

// watch follows w from the first revision to the load's target, or until ctx ends.
func (c *client) watch(ctx context.Context, w watchKind) {
	position := int64(firstWrite - 1)
	for ctx.Err() == nil && !c.load.reached(position) {
		position = c.follow(ctx, w, position)
		c.position.Store(position)
		c.move()
		pauseFor(ctx, time.Duration(c.rand.IntN(50))*time.Millisecond)
	}
}

func (l *Load) reached(position int64) bool {
	target := l.target.Load()
	return target != 0 && position >= target
}

// follow watches with one stream and returns how far the watch has come.
func (c *client) follow(ctx context.Context, w watchKind, position int64) int64 {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.restless {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(200+c.rand.IntN(1500))*time.Millisecond)
		defer cancel()
	}
	stream, err := pb.NewWatchClient(c.conns[c.member]).Watch(ctx)
	if err != nil {
		return position
	}
	s := &Stream{Member: c.member, Start: position + 1}
	w.Streams = append(w.Streams, s)
	create := &pb.WatchCreateRequest{Key: []byte(w.From), RangeEnd: []byte(w.End), StartRevision: s.Start, PrevKv: w.Before, ProgressNotify: w.progress}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return position
	}
	asked := make(chan struct{})
	defer func() { cancel(); <-asked }()
	go func() {
		defer close(asked)
		askProgress(ctx, stream)
	}()
	for !c.load.reached(position) {
		r, err := stream.Recv()
		if err != nil {
			return position
		}
		response := responseOf(r, c.load.history.Now())
		s.Responses = append(s.Responses, response)
		position = max(position, response.position())
		c.position.Store(position)
		if response.Canceled != "" {
			return position
		}
	}
	return position
}

// askProgress asks now and then until ctx or the stream ends.
func askProgress(ctx context.Context, stream pb.Watch_WatchClient) {
	ask := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	for ctx.Err() == nil {
		pauseFor(ctx, 150*time.Millisecond)
		if stream.Send(ask) != nil {
			return
		}
	}
}
