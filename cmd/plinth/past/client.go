// Package past reads what the API group history.plinth.io has of objects, and brings back what was:
// the work behind plinth log, get --at, diff, blame, undo, trash, undelete and forget.
//
// It is a client. It asks a server through an ordinary kubeconfig and writes through the API, so that
// authorization, admission and validation decide as for every other change. It owns the meaning of
// moments (2h, 14:00, 12345, ~1), the text in which objects are compared, whom a line is blamed on, and
// what of an old state is written back. It must not know flags, terminals, or where output goes.
package past

import (
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Client asks one server. Its parts build on each other: History looks up types in Kinds, and Reverter reads History.
type Client struct {
	Kinds    *Kinds
	History  *History
	Reverter *Reverter
}

// server is the connection that the parts of a Client share. It does not change.
type server struct {
	host     string // for errors
	rest     clientrest.Interface
	objects  dynamic.Interface
	distrust func(error) error
}

// New returns a client. It asks nothing yet. distrust says of an error of a request whether client and server do not
// trust each other, and returns nil if it is another one; without it nobody says so.
func New(config *clientrest.Config, distrust func(error) error) (*Client, error) {
	config = clientrest.CopyConfig(config)
	config.QPS = -1                // the server has its own limits
	config.UserAgent = UndoManager // as whose deletions are noted, which have no field manager
	config.WarningHandler = clientrest.NoWarnings{}
	s := &server{host: config.Host, distrust: distrust}
	withCodecs := clientrest.CopyConfig(config)
	withCodecs.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := clientrest.UnversionedRESTClientFor(withCodecs)
	if err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	s.rest = client
	if s.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	cached := memory.NewMemCacheClient(found)
	kinds := &Kinds{s, cached, restmapper.NewDeferredDiscoveryRESTMapper(cached)}
	history := &History{server: s, kinds: kinds}
	return &Client{kinds, history, &Reverter{s, kinds, history}}, nil
}

// Again returns a Client of the same server and the same kinds for another goroutine.
func (c *Client) Again() *Client {
	history := &History{server: c.History.server, kinds: c.Kinds}
	return &Client{c.Kinds, history, &Reverter{history.server, c.Kinds, history}}
}
