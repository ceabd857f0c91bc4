package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// stream sends Server-Sent Events. Goroutines may share it.
type stream struct {
	mu  sync.Mutex
	w   http.ResponseWriter
	out *http.ResponseController
}

// stream begins the answer of a live page. A comment now and then tells whether somebody still reads it.
func (v *visit) stream() *stream {
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{w: v.w, out: http.NewResponseController(v.w)}
	_ = s.write(": hello\n\n")
	return s
}

// send sends an event. With an id a browser that was cut off says where it was, in Last-Event-ID.
func (s *stream) send(event, id string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	head := ""
	if id != "" {
		head = "id: " + id + "\n"
	}
	return s.write(head + "event: " + event + "\ndata: " + string(text) + "\n\n")
}

// slowest is how long a browser may take for an event.
const slowest = 30 * time.Second

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.SetWriteDeadline(time.Now().Add(slowest))
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return err
	}
	return s.out.Flush()
}
