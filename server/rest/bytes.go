package rest

import (
	"context"
	"fmt"
	"io"
	"net/http"

	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/flushwriter"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/upgrade"
)

// getBytes answers with bytes from another server, such as a container's log. A followed log ends at the latest when
// the server drains.
func (q *request) getBytes() error {
	options, deep, key := q.sub.Stream.NewGetOptions()
	if err := parameters(q, options, deep, key); err != nil {
		return err
	}
	ctx, end := context.WithCancel(q.rulesContext())
	defer end()
	obj, err := q.sub.Stream.Get(ctx, q.name, options)
	if err != nil {
		return response.FromRegistry(err)
	}
	from, ok := obj.(apirest.ResourceStreamer)
	if !ok {
		return fmt.Errorf("%s of %s is no stream but %T", q.sub.Name, q.kind.Resource, obj)
	}
	body, follow, mediaType, err := from.InputStream(ctx, q.gvk().GroupVersion().String(), q.r.Header.Get("Accept"))
	if err != nil {
		return response.FromRegistry(err)
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
		return nil // the client may be gone
	}
	copyBytes(q.w, body, follow, mediaType)
	return nil
}

// copyBytes writes body. With follow it flushes after each piece.
func copyBytes(w http.ResponseWriter, body io.Reader, follow bool, mediaType string) {
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	to := io.Writer(w)
	if follow {
		to = flushwriter.Wrap(w)
	}
	_, _ = io.Copy(to, body) // the headers are out, so an error can only end the body
}
