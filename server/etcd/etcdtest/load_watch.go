package etcdtest

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// watchKind is a group of watches that share streams, and how their client watches.
type watchKind struct {
	watches  []*Watch
	restless bool // it changes to a random member about every second
	progress bool // it requests regular progress reports
}

// watches returns the watches of the load.
func (l *Load) watches() (all []watchKind) {
	watch := func(name, from, end string, before bool) *Watch {
		return l.history.AddWatch(&Watch{Name: name, From: from, End: end, Before: before})
	}
	one := func(restless, progress bool, watches ...*Watch) {
		all = append(all, watchKind{watches, restless, progress})
	}
	everything, allPods, allEvents := span("/registry/"), span(pods), span(events)
	one(false, false, watch("all", everything[0], everything[1], true))
	one(true, false, watch("all, restless", everything[0], everything[1], false))
	one(false, true, watch("pods", allPods[0], allPods[1], true))
	one(false, false, watch("pods of a stream", allPods[0], allPods[1], false), watch("events of a stream", allEvents[0], allEvents[1], true))
	one(true, true, watch("pods of a stream, restless", allPods[0], allPods[1], true), watch("one pod, restless", pods+"default/p1", pods+"default/p1\x00", false))
	return all
}

// span returns the range of keys with a prefix that ends with a slash.
func span(prefix string) [2]string { return [2]string{prefix, prefix[:len(prefix)-1] + "0"} }

// watch runs watches from the first revision to the load's target, or until ctx ends.
func (c *client) watch(ctx context.Context, k watchKind) {
	positions := make([]int64, len(k.watches))
	for i := range positions {
		positions[i] = firstWrite - 1
	}
	for ctx.Err() == nil && !c.reached(positions) {
		c.follow(ctx, k, positions)
		c.move()
		_ = sleep.For(ctx, time.Duration(c.rand.IntN(50))*time.Millisecond)
	}
}

// reached records the progress of the client's watches, and reports whether they have reached the load's
// target.
func (c *client) reached(positions []int64) bool {
	c.position.Store(slices.Min(positions))
	target := c.load.target.Load()
	return target != 0 && slices.Min(positions) >= target
}

// follow watches with one stream, and advances positions by what it receives.
func (c *client) follow(ctx context.Context, k watchKind, positions []int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if k.restless {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(200+c.rand.IntN(1500))*time.Millisecond)
		defer cancel()
	}
	stream, err := pb.NewWatchClient(c.conns[c.member]).Watch(ctx)
	if err != nil {
		return
	}
	streams := make([]*Stream, len(k.watches))
	for i, w := range k.watches {
		streams[i] = &Stream{Member: c.member, Start: positions[i] + 1}
		w.Streams = append(w.Streams, streams[i])
		create := &pb.WatchCreateRequest{
			WatchId: int64(i + 1), Key: []byte(w.From), RangeEnd: []byte(w.End),
			StartRevision: streams[i].Start, PrevKv: w.Before, ProgressNotify: k.progress,
		}
		if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			return
		}
	}
	asked := make(chan struct{})
	defer func() { cancel(); <-asked }()
	go func() {
		defer close(asked)
		askProgress(ctx, stream)
	}()
	for !c.reached(positions) {
		r, err := stream.Recv()
		if err != nil {
			return
		}
		response := responseOf(r, c.load.history.Now())
		for i, s := range streams {
			if r.WatchId == int64(i+1) || r.WatchId == -1 { // for one watch, or for all
				s.Responses = append(s.Responses, response)
				positions[i] = max(positions[i], response.position())
			}
		}
		if response.Canceled != "" {
			return
		}
	}
}

// askProgress requests progress at intervals until ctx or the stream ends.
func askProgress(ctx context.Context, stream pb.Watch_WatchClient) {
	ask := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	for ctx.Err() == nil {
		_ = sleep.For(ctx, 150*time.Millisecond)
		if stream.Send(ask) != nil {
			return
		}
	}
}
