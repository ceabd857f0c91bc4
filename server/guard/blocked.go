package guard

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// blocked is the time at which the present read or write began; 0 if none is under way.
type blocked struct {
	begun atomic.Int64
	seat  *seat // hears of waits; nil before the request has one
}

// begin is called before a read or a write of so many bytes.
func (b *blocked) begin(bytes int) {
	b.begun.Store(time.Now().UnixNano())
	if b.seat != nil {
		b.seat.waits(bytes)
	}
}

func (b *blocked) end() {
	begun := b.begun.Swap(0)
	if b.seat != nil {
		b.seat.hasWaited(begun)
	}
}

func (b *blocked) since(now time.Time) time.Duration {
	begun := b.begun.Load()
	if begun == 0 {
		return 0
	}
	return time.Duration(now.UnixNano() - begun)
}

// out is a response writer that shows whether its client reads.
type out struct {
	http.ResponseWriter
	blocked blocked
	until   atomic.Int64 // Unix time in ms from which a blocked write is cut off; 0: never
}

func (o *out) Write(p []byte) (int, error) {
	o.blocked.begin(len(p))
	defer o.blocked.end()
	return o.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController to flush.
func (o *out) FlushError() error {
	o.blocked.begin(buffered + 1)
	defer o.blocked.end()
	return http.NewResponseController(o.ResponseWriter).Flush()
}

// Holds says that so many bytes wait in memory until the client has read them.
func (o *out) Holds(bytes int) {
	if s := o.blocked.seat; s != nil {
		s.size.Store(int64(bytes))
	}
}

// SetWriteDeadline is for http.ResponseController; it takes effect at the server's next
// look.
func (o *out) SetWriteDeadline(t time.Time) error {
	o.until.Store(t.UnixMilli())
	return nil
}

// Unwrap gives http.ResponseController the other methods of the writer.
func (o *out) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// in is a request's body that shows whether its client sends.
type in struct {
	io.ReadCloser
	blocked blocked
	until   atomic.Int64 // as in out; a deadline of net/http would cost a timer for each write
}

func (i *in) Read(p []byte) (int, error) {
	i.blocked.begin(len(p))
	defer i.blocked.end()
	return i.ReadCloser.Read(p)
}
