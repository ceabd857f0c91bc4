package rest

import (
	"sync"

	"github.com/plinth-io/plinth/sqlstore"
)

// A watch collects events in a buffer and keeps it until the connection has taken them.
// While thousands of watches share few connections, nearly all of them wait for that, so
// the size of these buffers decides how much memory a burst of changes takes: with the 64 KiB
// of a list, 5,000 watches took 400 MiB. A smaller buffer costs more CPU time for each event,
// with 16 KiB a fifth more.
const (
	eventChunk = 32 << 10
	// smallChunk is for the usual case, a watch that has one object to send.
	smallChunk = 4 << 10
)

var (
	eventChunks = sync.Pool{New: func() any { return &eventBuffer{b: make([]byte, 0, eventChunk)} }}
	smallChunks = sync.Pool{New: func() any { return &eventBuffer{b: make([]byte, 0, smallChunk)} }}
)

// eventBuffer is the memory of one pass over events. An idle watch has none.
type eventBuffer struct{ b []byte }

// lendBuffer lends a buffer for about size bytes of events. The borrower releases it.
func lendBuffer(size int) *eventBuffer {
	if size <= smallChunk {
		return smallChunks.Get().(*eventBuffer)
	}
	return eventChunks.Get().(*eventBuffer)
}

// release takes the buffer back, unless objects have made it grow to more than twice what it was.
func (e *eventBuffer) release() {
	e.b = e.b[:0]
	switch c := cap(e.b); {
	case c <= 2*smallChunk:
		smallChunks.Put(e)
	case c >= eventChunk && c <= 2*eventChunk:
		eventChunks.Put(e)
	}
}

// writeFull writes the buffer out if it holds enough to be worth the cost of a write. It is called
// after each event.
func (e *eventBuffer) writeFull(out sink) error {
	if len(e.b) < eventChunk-2<<10 && !out.OneEach() { // another event would fit
		return nil
	}
	return e.write(out)
}

// write writes out what the buffer holds.
func (e *eventBuffer) write(out sink) error {
	if len(e.b) == 0 {
		return nil
	}
	if _, err := out.Write(e.b); err != nil {
		return errGone
	}
	e.b = e.b[:0]
	return nil
}

// frameSize is about what an event has around its object.
const frameSize = 32

// eventsSize is about how many bytes events take on the wire, counted no further than
// lendBuffer wants to know.
func eventsSize(events []*sqlstore.Event) (size int) {
	for _, e := range events {
		if size += frameSize + len(e.Entry.Value); size > smallChunk {
			break
		}
	}
	return size
}

// entriesSize does for entries what eventsSize does for events.
func entriesSize(entries []*sqlstore.Entry) (size int) {
	for _, e := range entries {
		if size += frameSize + len(e.Value); size > smallChunk {
			break
		}
	}
	return size
}
