package rest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

// written is a sink that remembers how long each write was.
type written struct {
	lengths []int
	err     error
}

func (w *written) Write(p []byte) (int, error) {
	w.lengths = append(w.lengths, len(p))
	return len(p), w.err
}

func (w *written) Flush()        {}
func (w *written) OneEach() bool { return false }

// TestEventBuffer wants the buffer of a watch to be as large as the events that it has to send, up
// to a bound.
func TestEventBuffer(t *testing.T) {
	event := func(size int) *sqlstore.Event {
		return &sqlstore.Event{Entry: &sqlstore.Entry{Value: bytes.Repeat([]byte("x"), size)}}
	}
	many := make([]*sqlstore.Event, 256)
	for i := range many {
		many[i] = event(10_000)
	}
	for _, c := range []struct {
		name   string
		events []*sqlstore.Event
		most   int
	}{
		{"one small object", []*sqlstore.Event{event(1000)}, 2 * smallChunk},
		{"one large object", []*sqlstore.Event{event(10_000)}, eventChunk},
		{"a backlog", many, 2 * eventChunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			buffer, out := lendBuffer(eventsSize(c.events)), &written{}
			for cap(buffer.b) > eventChunk { // an earlier backlog has made it grow
				buffer = lendBuffer(eventsSize(c.events))
			}
			total := 0
			for _, e := range c.events {
				buffer.b = append(buffer.b, e.Entry.Value...)
				total += len(e.Entry.Value)
				if err := buffer.writeFull(out); err != nil {
					t.Fatal(err)
				}
			}
			if err := buffer.write(out); err != nil {
				t.Fatal(err)
			}
			if cap(buffer.b) > c.most {
				t.Errorf("%d bytes are held, more than %d", cap(buffer.b), c.most)
			}
			for _, n := range out.lengths {
				total -= n
			}
			if total != 0 {
				t.Errorf("%d bytes were not written", total)
			}
			buffer.release()
		})
	}
}

func TestEventBufferOfGoneClient(t *testing.T) {
	buffer := lendBuffer(10)
	defer buffer.release()
	if err := buffer.write(&written{}); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
	buffer.b = append(buffer.b, "event"...)
	if err := buffer.write(&written{err: errors.New("broken pipe")}); !errors.Is(err, errGone) {
		t.Errorf("error %v", err)
	}
}
