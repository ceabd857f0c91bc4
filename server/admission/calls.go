package admission

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	clientrest "k8s.io/client-go/rest"
)

// connected calls webhooks through o.Dial, and those behind the API itself through o.Self. Which host names mean the
// API itself is the same as upstream (apiserver/pkg/util/webhook/authentication.go).
func (o *WebhookOptions) connected(calls webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*clientrest.Config, error) {
			if o.Self != nil && hostPort == "kubernetes.default.svc:443" {
				return o.toSelf(), nil
			}
			return o.dialing(calls.ClientConfigFor(hostPort))
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*clientrest.Config, error) {
			if o.Self != nil && namespace == "default" && name == "kubernetes" && port == 443 {
				return o.toSelf(), nil
			}
			return o.dialing(calls.ClientConfigForService(name, namespace, port))
		},
	}
}

func (o *WebhookOptions) dialing(c *clientrest.Config, err error) (*clientrest.Config, error) {
	if err != nil || o.Dial == nil {
		return c, err
	}
	c = clientrest.CopyConfig(c)
	c.Dial = o.Dial
	return unshared(c), nil
}

func (o *WebhookOptions) toSelf() *clientrest.Config {
	c := unshared(&clientrest.Config{})
	c.Wrap(func(http.RoundTripper) http.RoundTripper { return o.Self })
	return c
}

// unshared names the proxy that would be used anyway, because client-go does not cache transports with a proxy of their
// own for ever.
func unshared(c *clientrest.Config) *clientrest.Config {
	c.Proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	return c
}
