package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// watcher is a client that watches.
type watcher struct {
	*caller
	watch  *Watch
	target *atomic.Int64 // the watch ends when it has come so far; 0: it goes on
	starts int           // streams so far
}

const initialEnd = "k8s.io/initial-events-end"

// follow watches until the target is reached or ctx ends. It goes on after breaks, at any replica, and
// sometimes goes back to a revision that somebody has seen.
func (w *watcher) follow(ctx context.Context) {
	position := int64(0)
	for ctx.Err() == nil {
		if target := w.target.Load(); target != 0 && position >= target {
			return
		}
		s := w.next(ctx, position)
		if s == nil {
			continue
		}
		w.watch.Streams = append(w.watch.Streams, s)
		w.read(ctx, s)
		switch {
		case s.Status == 410 && s.Start >= position:
			position = 0
		case s.Status != 410:
			position = max(position, s.position())
		}
		if len(s.Events) == 0 {
			_ = sleep.For(ctx, 50*time.Millisecond)
		}
		w.move()
	}
}

// next returns a stream that goes on at position, or begins with a list or the state if that is 0.
func (w *watcher) next(ctx context.Context, position int64) *Stream {
	w.starts++
	s := &Stream{Start: position}
	switch {
	case position == 0 && w.rand.IntN(2) == 0:
		s.State = true
	case position == 0:
		call := w.begin(List, w.watch.Prefix)
		if answer := w.send(ctx, call, request{method: "GET", path: w.listPath(call.Key)}); answer != nil && call.OK() {
			call.take(answer)
		}
		if !w.end(call).OK() {
			w.move()
			_ = sleep.For(ctx, 50*time.Millisecond)
			return nil
		}
		s.Start = call.Revision
	case w.rand.IntN(4) == 0 && w.target.Load() == 0:
		if back := w.seen.any(w.rand); back != 0 {
			s.Start = back
		}
	}
	s.Replica, s.Begin = w.at, w.history.Now()
	return s
}

// read reads a stream for some seconds, or until it breaks.
func (w *watcher) read(ctx context.Context, s *Stream) {
	defer func() { s.End = w.history.Now() }()
	seconds := 2 + w.rand.IntN(5)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+callTime/2)
	defer cancel()
	if w.rand.IntN(3) == 0 {
		early := time.AfterFunc(time.Duration(w.rand.IntN(3000))*time.Millisecond, cancel)
		defer early.Stop()
	}
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	if s.State {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		query.Set("resourceVersion", strconv.FormatInt(s.Start, 10))
	}
	r, err := w.open(ctx, request{method: "GET", path: w.listPath(w.watch.Prefix) + "?" + query.Encode()}, w.nextID())
	if err != nil {
		s.Error = err.Error()
		return
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	if r.StatusCode != 200 {
		text, _ := io.ReadAll(io.LimitReader(lines, 500))
		s.Status, s.Error = r.StatusCode, string(text)
		return
	}
	for w.readEvent(lines, s) {
	}
}

// readEvent reads the next event; false: it was the last one, or the target is reached.
func (w *watcher) readEvent(lines *bufio.Reader, s *Stream) bool {
	line, err := lines.ReadBytes('\n')
	if err != nil { // part of an event is none
		if !errors.Is(err, io.EOF) {
			s.Error = err.Error()
		}
		return false
	}
	var e struct {
		Type   string
		Object wire
	}
	if err := json.Unmarshal(line, &e); err != nil {
		s.Status, s.Error = 422, fmt.Sprintf("%v: %.200s", err, line)
		return false
	}
	if e.Type == "ERROR" {
		s.Status, s.Error = e.Object.Code, e.Object.Message
		return false
	}
	event := Event{Type: e.Type, Item: e.Object.item(), At: w.history.Now()}
	if e.Type == Bookmark {
		event.Item = Item{Revision: event.Revision}
		event.Initial = e.Object.Metadata.Annotations[initialEnd] != ""
	} else if !within(event.Key, w.watch.Prefix) {
		return true // of an object that was there before
	}
	s.Events = append(s.Events, event)
	w.seen.add(event.Revision)
	target := w.target.Load()
	return target == 0 || s.position() < target
}
