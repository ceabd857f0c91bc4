package etcdbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

func (r *run) measureWatch(ctx context.Context) error {
	pace := fmt.Sprintf("%d watchers, %d writes/s", r.scale.churn.Watches, writesPerSecond)
	rounds := 0
	return r.Compare(ctx, r.scale.watchRounds, false, func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		rounds++
		prefix := fmt.Sprintf("%swatched-%03d/", r.prefix, rounds)
		a, err := e.seat(ctx, r.scale.churn.Watches, 1, func(uint8) string { return prefix })
		if err != nil {
			return nil, err
		}
		v, err := a.Measure(ctx, int(r.scale.watch.Seconds()*writesPerSecond), writesPerSecond, func(ctx context.Context, n int) error {
			_, err := e.create(ctx, n, fmt.Sprintf("%s%06d", prefix, n), valueOf(n))
			return err
		})
		return []figures.Sample{v.Delay(), v.Faults(plain)}, err
	}, &figures.Row{What: "watch, " + pace + ": p99 delay", Unit: "ms", Less: true, Targets: delayTargets}, measure.FaultsRow())
}

// seat opens watches that begin now, in turn of each resource.
func (e *endpoint) seat(ctx context.Context, watchers, resources int, prefix func(resource uint8) string) (*measure.Audience, error) {
	now, err := e.clients[0].Kubernetes.Get(ctx, prefix(0), kubernetes.GetOptions{})
	if err != nil {
		return nil, err
	}
	a, ctx := measure.NewAudience(clientv3.WithRequireLeader(ctx))
	for i := range watchers {
		resource := uint8(i % resources)
		events := e.client(i).Watch(ctx, prefix(resource), clientv3.WithPrefix(), clientv3.WithPrevKV(),
			clientv3.WithRev(now.Revision+1), clientv3.WithCreatedNotify())
		first, ok := <-events
		if !ok || first.Err() != nil {
			err := cause(ctx, first.Err())
			a.End()
			return nil, fmt.Errorf("watch: %w", err)
		}
		a.Seat(resource, now.Revision, func(w *measure.Watch) {
			if !first.Created {
				receive(w, first)
			}
			follow(ctx, w, events)
		})
	}
	return a, nil
}

func cause(ctx context.Context, err error) error {
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = errors.New("it was closed")
	}
	return err
}

// follow receives until ctx ends or the watch does, which is an error.
func follow(ctx context.Context, w *measure.Watch, events clientv3.WatchChan) {
	for response := range events {
		receive(w, response)
	}
	if ctx.Err() == nil {
		w.Fail(errors.New("the watch was closed"))
	}
}

func receive(w *measure.Watch, response clientv3.WatchResponse) {
	arrived := time.Now()
	if err := response.Err(); err != nil {
		w.Fail(err)
		return
	}
	for _, event := range response.Events {
		w.Take(eventOf((*mvccpb.Event)(event)), arrived)
	}
}

// eventOf reads an event. The value that was deleted says which write made it.
func eventOf(event *mvccpb.Event) measure.Event {
	value := event.Kv.Value
	if event.Type == mvccpb.Event_DELETE {
		value = nil
		if event.PrevKv != nil {
			value = event.PrevKv.Value
		}
	}
	n, sent, ok := writeOf(value)
	return measure.Event{Known: ok, Write: n, Sent: sent, Revision: event.Kv.ModRevision, Deleted: event.Type == mvccpb.Event_DELETE}
}
