package aggregator

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	proxyrequest "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/transport"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/plinth-io/plinth/server/upgrade"
)

const auditHeader = "Audit-Id"

// Serve hands an authorized request on in the name of who and answers what the extension
// server answers (upstream: kube-aggregator/pkg/apiserver/handler_proxy.go).
func (x *Service) Serve(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) {
	if !x.Available() {
		http.Error(w, unavailable, http.StatusServiceUnavailable)
		return
	}
	flowcontrol.RequestDelegated(r.Context())
	x.forward(w, r, info, who)
}

// unavailable is upstream's answer for an extension server that cannot be reached.
const unavailable = "service unavailable"

func (x *Service) forward(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, who user.Info) {
	if x.target.err != nil {
		http.Error(w, x.target.err.Error(), http.StatusInternalServerError)
		return
	}
	location, err := x.location(r.URL.Path)
	if err != nil {
		http.Error(w, unavailable, http.StatusServiceUnavailable)
		return
	}
	location.RawQuery = r.URL.Query().Encode()
	r, cancel := proxyrequest.NewRequestForProxy(location, r.WithContext(apirequest.WithRequestInfo(r.Context(), info)))
	defer cancel()
	if id := w.Header().Get(auditHeader); id != "" {
		r.Header.Set(auditHeader, id)
	}

	upgrades := httpstream.IsUpgradeRequest(r)
	if upgrades || info.Verb == "watch" {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		defer context.AfterFunc(x.services.draining, end)()
		r = r.WithContext(ctx)
	}
	if upgrades {
		// The handler of upgrades writes to the connection itself, so the transport
		// cannot add these headers.
		transport.SetAuthProxyHeaders(r, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
		w = upgrade.Until(r.Context(), w)
	}
	as := transport.NewAuthProxyRoundTripper(who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(), x.target.transport)
	handler := proxy.NewUpgradeAwareHandler(location, as, true, upgrades, refusal{})
	handler.RejectForwardingRedirects = true
	handler.ServeHTTP(w, r)
}

// location returns the URL of path on the extension server.
func (x *Service) location(path string) (*url.URL, error) {
	ref := x.Object.Spec.Service
	at, err := x.services.resolver.ResolveEndpoint(ref.Namespace, ref.Name, portOf(x.Object))
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: at.Host, Path: path}, nil
}

// refusal tells the client why the extension server could not be asked.
type refusal struct{}

func (refusal) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
