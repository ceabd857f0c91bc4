package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/flushwriter"

	"github.com/plinth-io/plinth/server/upgrade"
)

// getBytes answers with bytes that come from elsewhere: a log. One that is followed ends at
// the latest when the server drains.
func (q *request) getBytes() error {
	options, deep, key := q.sub.Stream.NewGetOptions()
	if err := q.parameters(options, deep, key); err != nil {
		return err
	}
	ctx, end := context.WithCancel(q.rulesContext())
	defer end()
	obj, err := q.sub.Stream.Get(ctx, q.name, options)
	if err != nil {
		return plainly(err)
	}
	from, ok := obj.(rest.ResourceStreamer)
	if !ok {
		return fmt.Errorf("%s of %s is no stream but %T", q.sub.Name, q.kind.Resource, obj)
	}
	body, follow, mediaType, err := from.InputStream(ctx, q.gvk().GroupVersion().String(), q.r.Header.Get("Accept"))
	if err != nil {
		return plainly(err)
	}
	if body == nil {
		q.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	defer body.Close()
	if follow {
		defer context.AfterFunc(q.api.draining, end)()
	}
	if wsstream.IsWebSocketRequest(q.r) {
		_ = wsstream.NewReader(body, true, wsstream.NewDefaultReaderProtocols()).Copy(upgrade.Until(ctx, q.w), q.r)
		return nil // a client that is gone is nobody's error
	}
	q.copyBytes(body, follow, mediaType)
	return nil
}

// copyBytes writes body, and with follow whatever comes as soon as it comes.
func (q *request) copyBytes(body io.Reader, follow bool, mediaType string) {
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	q.w.Header().Set("Content-Type", mediaType)
	q.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(q.w).Flush()
	to := io.Writer(q.w)
	if follow {
		to = flushwriter.Wrap(q.w)
	}
	_, _ = io.Copy(to, body) // all that can be told is that it ends
}
