package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// EventType says what happened to a key.
type EventType uint8

const (
	Put    EventType = iota // Prev is nil for a key that was absent
	Delete                  // Entry is the last state at the tombstone's revision
)

// Event is one change as watchers see it. It is made once and shared by all of them.
type Event struct {
	Type  EventType
	Entry *Entry
	Prev  *Entry // what the key held before, nil if it was absent

	took []took // for the attributes that were watched
}

// left returns what the key holds after the change; nil if it is absent then.
func (ev *Event) left() *Entry {
	if ev.Type == Delete {
		return nil
	}
	return ev.Entry
}

// eventOverhead is what an event costs beside its objects' bytes: Event, Entry, key,
// places in queues, and a little for what is derived from the entry.
const eventOverhead = 400

// tookBytes is what an event takes for each attribute that is watched.
const tookBytes = 72

func (ev *Event) size() int {
	n := eventOverhead + tookBytes*len(ev.took) + ev.Entry.size() + len(ev.Entry.Key)
	if ev.Prev != nil {
		n += ev.Prev.size()
	}
	return n
}

func (v *values) eventOf(ctx context.Context, step *changelog.Step) *Event {
	ev := &Event{Entry: v.entryOf(ctx, &step.Row)}
	if step.Deleted {
		ev.Type = Delete
	}
	if step.Prev != nil {
		ev.Prev = v.entryOf(ctx, step.Prev)
	}
	return ev
}
