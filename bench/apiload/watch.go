package apiload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Newest returns the revision of the newest state of a collection.
func (c Clients) Newest(ctx context.Context, path string) (int64, error) {
	var list bytes.Buffer
	_, err := c[0].Do(ctx, http.MethodGet, withQuery(path, "limit=1"), nil, &list)
	return IntField(list.Bytes(), "resourceVersion"), err
}

// Watches are open watches.
type Watches struct {
	cancel  context.CancelFunc
	readers sync.WaitGroup
}

// Watch opens watches at path(i), which may have a query, and has read receive what each gets, until End or the end of
// ctx.
func (c Clients) Watch(ctx context.Context, watches int, path func(i int) string, read func(i int, stream io.Reader)) (*Watches, error) {
	w := &Watches{}
	ctx, w.cancel = context.WithCancel(ctx)
	for i := range watches {
		response, err := c.Of(i).Send(ctx, http.MethodGet, withQuery(path(i), "watch=1"), nil)
		if err != nil {
			w.End()
			return nil, fmt.Errorf("watch: %w", err)
		}
		w.readers.Go(func() {
			defer response.Body.Close()
			read(i, response.Body)
		})
	}
	return w, nil
}

// WatchFrom is Watch of one collection, from now on.
func (c Clients) WatchFrom(ctx context.Context, watches int, path string, read func(i int, stream io.Reader)) (*Watches, error) {
	newest, err := c.Newest(ctx, path)
	if err != nil {
		return nil, err
	}
	return c.Watch(ctx, watches, At(withQuery(path, fmt.Sprintf("resourceVersion=%d", newest))), read)
}

// End ends the watches.
func (w *Watches) End() {
	w.cancel()
	w.readers.Wait()
}

// Seat opens watches that begin now, in turn of each resource, at path(resource), which may have
// a query. All are of one kind.
func (c Clients) Seat(ctx context.Context, watches, resources int, path func(resource uint8) string) (*measure.Audience, error) {
	newest, err := c.Newest(ctx, path(0))
	if err != nil {
		return nil, err
	}
	a, ctx := measure.NewAudience(ctx)
	for i := range watches {
		resource := uint8(i % resources)
		response, err := c.Of(i).Send(ctx, http.MethodGet, withQuery(path(resource), fmt.Sprintf("watch=1&resourceVersion=%d", newest)), nil)
		if err != nil {
			a.End()
			return nil, fmt.Errorf("watch: %w", err)
		}
		a.Seat(resource, newest, func(w *measure.Watch) {
			defer response.Body.Close()
			if err := follow(w, response.Body); err != nil && ctx.Err() == nil {
				w.Fail(err)
			}
		})
	}
	return a, nil
}

// follow receives events until the connection ends. Each is a line.
func follow(w *measure.Watch, stream io.Reader) error {
	lines := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		arrived := time.Now()
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("event of more than %d bytes", len(line))
		}
		if err != nil {
			return fmt.Errorf("the watch has ended: %w", err)
		}
		if bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) {
			return fmt.Errorf("%s", bytes.TrimSpace(line))
		}
		if e := eventOf(line); e.Known { // others may have objects there, too
			w.Take(e, arrived)
		}
	}
}

func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// eventOf reads an event of a ConfigMap. A deletion has the object as it was.
func eventOf(line []byte) measure.Event {
	sent := IntField(line, "sent")
	return measure.Event{
		Known: sent != 0, Write: int(IntField(line, "n")), Sent: time.Unix(0, sent),
		Revision: IntField(line, "resourceVersion"), Deleted: bytes.HasPrefix(line, []byte(`{"type":"DELETED"`)),
	}
}
