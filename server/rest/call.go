package rest

import (
	"context"
	"net/http"
	"net/url"

	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/response"
)

// call is one HTTP request to the API: who asks, with which options, and how the answer is encoded and written. The
// object that it is about is a target. A call that the server makes itself has no HTTP request and no answer, see
// DeleteAll.
type call struct {
	api       *API
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context // of r
	info      *apirequest.RequestInfo
	who       user.Info
	admission apiadmission.Interface // asked for every write; nil admits all

	query   url.Values      // parsed at the first use, see values
	out     response.Output // negotiated response encoding
	routed  bool            // a verb answers: errors come in the encodings of objects
	refused error           // set if the client accepts nothing that is offered; out is empty then
	warn    *response.Warnings
}

// values returns the query parameters.
func (c *call) values() url.Values {
	if c.query == nil {
		if c.r.URL.RawQuery == "" {
			return nil
		}
		c.query = c.r.URL.Query()
	}
	return c.query
}

// body reads the request's body, up to the limit.
func (c *call) body() ([]byte, error) { return response.ReadBody(c.r, c.api.o.MaxBodyBytes) }

// negotiate finds the encoding of the answer. If the client accepts no encoding that is offered, it is refused later,
// at the point where upstream refuses it.
func (c *call) negotiate(o response.Offer) {
	ok := false
	if c.out, ok = response.Negotiate(c.r, o); !ok {
		c.refused = response.NotAcceptable(c.api.mediaTypes)
	}
}
