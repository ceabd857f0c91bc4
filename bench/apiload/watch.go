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
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Seat opens watches that begin now, in turn of each resource, at path(resource), which may have
// a query. All are of one kind.
func Seat(ctx context.Context, clients []*Client, watches, resources int, path func(resource uint8) string) (*measure.Audience, error) {
	var list bytes.Buffer
	if _, err := clients[0].Do(ctx, http.MethodGet, withQuery(path(0), "limit=1"), nil, &list); err != nil {
		return nil, err
	}
	newest := IntField(list.Bytes(), "resourceVersion")
	a, ctx := measure.NewAudience(ctx)
	for i := range watches {
		resource := uint8(i % resources)
		response, err := clients[i%len(clients)].Send(ctx, http.MethodGet, withQuery(path(resource), fmt.Sprintf("watch=1&resourceVersion=%d", newest)), nil)
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
