package guard

import (
	"context"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/plinth-io/plinth/server/audit"
)

// becomeKey is the context key of a *user.Info, into which upstream's filter puts the impersonated user. It stays nil
// if the filter has answered the request.
type becomeKey struct{}

// newImpersonation returns upstream's filter. With the feature ConstrainedImpersonation it remembers for ten seconds
// what it has allowed.
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
func newImpersonation(by authorizer.Authorizer) http.Handler {
	filter := impersonation.WithImpersonation
	if utilfeature.DefaultFeatureGate.Enabled(features.ConstrainedImpersonation) {
		filter = impersonation.WithConstrainedImpersonation
	}
	return filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		become := r.Context().Value(becomeKey{}).(*user.Info)
		*become, _ = apirequest.UserFrom(r.Context())
	}), by, legacyscheme.Codecs)
}

// impersonate makes x a request of the user that its Impersonate- headers name, and removes the headers, so that they do
// not reach a server to which the request is proxied. It returns false if it has answered the request: the headers
// name no user, or one that the caller must not be.
func (g *Guard) impersonate(x *Call) bool {
	r := x.Request()
	if !impersonates(r.Header) {
		return true
	}
	named := r.Header.Get(authenticationv1.ImpersonateUserHeader) != ""
	var become user.Info
	ctx := context.WithValue(r.Context(), becomeKey{}, &become)
	ctx = apirequest.WithUser(apirequest.WithRequestInfo(ctx, x.Info), x.User)
	g.impersonation.ServeHTTP(x.Response(), r.WithContext(ctx))
	if become == nil {
		return false
	}
	if named {
		x.SetRequest(r.WithContext(audit.WithImpersonator(r.Context(), x.User.GetName())))
		x.is(become)
	}
	return true
}

// impersonates tells whether a request has Impersonate- headers.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// UpstreamMetrics are the metrics of upstream's filter: attempts to impersonate, and their latencies.
var UpstreamMetrics = []string{
	"apiserver_impersonation_attempts_total", "apiserver_impersonation_attempts_duration_seconds",
	"apiserver_impersonation_authorization_attempts_total", "apiserver_impersonation_authorization_attempts_duration_seconds",
}
