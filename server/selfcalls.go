package server

import (
	"errors"
	"net/http"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/aggregator"
)

// toExtensions is the transport for webhooks that are named by the Service of the API itself, default/kubernetes:
// extension servers have such behind it. They are called as the server, who may do everything, so there is
// no way to anything but extension servers.
type toExtensions struct {
	next       http.RoundTripper
	extensions *aggregator.Services
}

var errNoExtension = errors.New("a webhook of the service default/kubernetes has to be at a path of an extension server: of an APIService with a service")

// RoundTrip implements http.RoundTripper.
func (t toExtensions) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.extensions.Of(&apirequest.RequestInfo{Path: r.URL.Path}) == nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errNoExtension
	}
	return t.next.RoundTrip(r)
}
