package authn

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
)

// proxies are the front proxies that may name others as the users of their requests.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authenticating-proxy
type proxies struct {
	*bundle
	o       *ProxyOptions
	headers authenticator.Request // of upstream; it believes what it reads
}

// openProxies returns nil if no front proxy is trusted.
func openProxies(o *ProxyOptions) (*proxies, error) {
	if o == nil || o.ClientCAFile == "" {
		return nil, nil
	}
	authorities, err := openBundle("--requestheader-client-ca-file", o.ClientCAFile)
	if err != nil {
		return nil, err
	}
	return &proxies{authorities, o, headerrequest.NewDynamic(
		headerrequest.StaticStringSlice(o.UsernameHeaders), headerrequest.StaticStringSlice(o.UIDHeaders),
		headerrequest.StaticStringSlice(o.GroupHeaders), headerrequest.StaticStringSlice(o.ExtraHeaderPrefixes),
	)}, nil
}

// allows tells whether the common name of a proxy's certificate is good. No names: all are.
func (p *proxies) allows(name string) bool {
	return len(p.o.AllowedNames) == 0 || slices.Contains(p.o.AllowedNames, name)
}

// A front proxy names the user in these headers, or in others that it was told to take. They are of
// the interface's type to save an allocation for each.
var (
	forwardedNames  headerrequest.StringSliceProvider = headerrequest.StaticStringSlice{"X-Remote-User"}
	forwardedUIDs   headerrequest.StringSliceProvider = headerrequest.StaticStringSlice{"X-Remote-Uid"}
	forwardedGroups headerrequest.StringSliceProvider = headerrequest.StaticStringSlice{"X-Remote-Group"}
	forwardedExtra  headerrequest.StringSliceProvider = headerrequest.StaticStringSlice{"X-Remote-Extra-"}
)

// strip removes all headers that name a user, so that a server to which the request is proxied
// does not take a client's for this server's own.
func (p *proxies) strip(h http.Header) {
	headerrequest.ClearAuthenticationHeaders(h, forwardedNames, forwardedUIDs, forwardedGroups, forwardedExtra)
	if p != nil {
		headerrequest.ClearAuthenticationHeaders(h,
			headerrequest.StaticStringSlice(p.o.UsernameHeaders), headerrequest.StaticStringSlice(p.o.UIDHeaders),
			headerrequest.StaticStringSlice(p.o.GroupHeaders), headerrequest.StaticStringSlice(p.o.ExtraHeaderPrefixes))
	}
}
