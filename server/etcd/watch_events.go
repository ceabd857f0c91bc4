package etcd

import (
	"errors"
	"iter"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// wanted returns the events that the watch's filters let through. It may change events.
func (w *watch) wanted(events []*sqlstore.Event) []*sqlstore.Event {
	if w.prevKV {
		beforeRevision(events)
	}
	if !w.noPut && !w.noDelete {
		return events
	}
	return slices.DeleteFunc(events, func(ev *sqlstore.Event) bool {
		if ev.Type == sqlstore.Delete {
			return w.noDelete
		}
		return w.noPut
	})
}

// beforeRevision sets each event's previous entry to the entry before its revision, as etcd reports it. These
// differ if a transaction has written a key twice. events must contain whole revisions.
func beforeRevision(events []*sqlstore.Event) {
	if !slices.ContainsFunc(events, replacesOwn) {
		return
	}
	type keyAt struct {
		key      string
		revision int64
	}
	before := make(map[keyAt]*sqlstore.Entry)
	for i, ev := range events {
		revision, _ := changelog.Split(ev.Entry.Revision)
		at := keyAt{ev.Entry.Key, revision}
		if replacesOwn(ev) {
			own := *ev // other watches share the event
			own.Prev = before[at]
			events[i] = &own
		} else if _, again := before[at]; !again {
			before[at] = ev.Prev
		}
	}
}

// replacesOwn reports whether an event replaces a write of the same transaction.
func replacesOwn(ev *sqlstore.Event) bool {
	revision, _ := changelog.Split(ev.Entry.Revision)
	return ev.Prev != nil && ev.Prev.Revision >= changelog.FirstID(revision)
}

// eventsOf returns events in the form for clients.
func (w *watch) eventsOf(events []*sqlstore.Event) ([]*mvccpb.Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	entries := make([]*sqlstore.Entry, 0, 2*len(events))
	for _, ev := range events {
		if ev.Type == sqlstore.Put {
			entries = append(entries, ev.Entry)
		}
	}
	puts := len(entries)
	if w.prevKV {
		for _, ev := range events {
			if ev.Prev != nil {
				entries = append(entries, ev.Prev)
			}
		}
	}
	values, err := w.values(entries, puts)
	if err != nil {
		return nil, err
	}
	return w.withValues(events, values[:puts], values[puts:]), nil
}

// values returns the values of entries. The first must of them are required; a later value, which is a
// replaced one, is nil if it is compacted.
func (w *watch) values(entries []*sqlstore.Entry, must int) ([][]byte, error) {
	store := w.st.s.store
	values, err := store.Keys().Values(w.ctx, entries)
	if must == len(entries) || !errors.Is(err, changelog.ErrCompacted) {
		return values, err
	}
	if values, err = store.Keys().Values(w.ctx, entries[:must]); err != nil {
		return nil, err
	}
	for _, e := range entries[must:] {
		one, err := store.Keys().Values(w.ctx, []*sqlstore.Entry{e})
		switch {
		case errors.Is(err, changelog.ErrCompacted):
			values = append(values, nil)
		case err != nil:
			return nil, err
		default:
			values = append(values, one[0])
		}
	}
	return values, nil
}

// withValues adds values to events: puts has one for each event that is a put, prevs has one for each event
// that replaces.
func (w *watch) withValues(events []*sqlstore.Event, puts, prevs [][]byte) []*mvccpb.Event {
	made := make([]*mvccpb.Event, len(events))
	for i, ev := range events {
		made[i] = &mvccpb.Event{}
		if ev.Type == sqlstore.Delete {
			revision, _ := changelog.Split(ev.Entry.Revision)
			made[i].Type = mvccpb.Event_DELETE
			made[i].Kv = &mvccpb.KeyValue{Key: []byte(ev.Entry.Key), ModRevision: revision}
		} else {
			made[i].Kv, puts = watchedKV(ev.Entry, puts[0]), puts[1:]
		}
		if w.prevKV && ev.Prev != nil {
			if prevs[0] != nil {
				made[i].PrevKv = watchedKV(ev.Prev, prevs[0])
			}
			prevs = prevs[1:]
		}
	}
	return made
}

// watchedKV returns an entry with its value.
func watchedKV(e *sqlstore.Entry, value []byte) *mvccpb.KeyValue {
	created, _ := changelog.Split(e.CreateRevision)
	modified, _ := changelog.Split(e.Revision)
	return &mvccpb.KeyValue{
		Key:            []byte(e.Key),
		CreateRevision: created,
		ModRevision:    modified,
		Version:        e.Version(),
		Lease:          e.Lease(),
		Value:          value,
	}
}

// sendEvents sends a response in pages, and large pages in fragments if the client accepts them. The caller
// must hold sending.
func (w *watch) sendEvents(r *pb.WatchResponse) {
	for page := range pages(r, watchPage) {
		if !w.fragment {
			w.st.send(page)
			continue
		}
		for _, part := range fragments(page, w.st.s.o.MaxRequestBytes+requestOverhead) {
			w.st.send(part)
		}
	}
}

// watchPage is the target size of a response with events of several revisions. gRPC encodes a response while
// the one before it waits for the client: if thousands of watches have fallen behind, each has this much in
// memory, and not all that it has missed.
const watchPage = 16 << 10

// pages divides a response at revisions.
func pages(r *pb.WatchResponse, limit int) iter.Seq[*pb.WatchResponse] {
	return func(yield func(*pb.WatchResponse) bool) {
		begin, size := 0, 0
		for i, ev := range r.Events {
			one := proto.Size(ev)
			if size += one; size > limit && i > begin && ev.Kv.ModRevision != r.Events[i-1].Kv.ModRevision {
				if !yield(partOf(r, r.Events[begin:i])) {
					return
				}
				begin, size = i, one
			}
		}
		yield(partOf(r, r.Events[begin:]))
	}
}

// partOf returns r with only some of its events.
func partOf(r *pb.WatchResponse, events []*mvccpb.Event) *pb.WatchResponse {
	return &pb.WatchResponse{Header: r.Header, WatchId: r.WatchId, Events: events}
}

// fragments divides a response into parts that are smaller than limit or have only one event.
func fragments(r *pb.WatchResponse, limit int) []*pb.WatchResponse {
	if len(r.Events) < 2 || proto.Size(r) < limit {
		return []*pb.WatchResponse{r}
	}
	var parts []*pb.WatchResponse
	for events := r.Events; len(events) > 0; {
		part := partOf(r, nil)
		part.Fragment = true
		n := fitting(events, limit-proto.Size(part))
		part.Events, events = events[:n], events[n:]
		part.Fragment = len(events) > 0
		parts = append(parts, part)
	}
	return parts
}

// fitting returns how many of the events fit into a message of less than room bytes; at least one.
func fitting(events []*mvccpb.Event, room int) int {
	size := 0
	for i, ev := range events {
		size += proto.Size(&pb.WatchResponse{Events: []*mvccpb.Event{ev}})
		if i > 0 && size >= room {
			return i
		}
	}
	return len(events)
}
