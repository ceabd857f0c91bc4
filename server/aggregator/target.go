package aggregator

import (
	"bytes"
	"crypto/tls"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/dialout"
)

// target is the connection to an extension server.
type target struct {
	spec apiregistration.APIServiceSpec

	transport *http.Transport
	err       error // instead of transport if the spec is invalid
}

// newTarget makes a transport that shows certificate to the extension server. Unless object
// says otherwise it verifies the server's certificate, which has to be for the Service's DNS
// name and signed by an authority of the bundle, or of the machine without a bundle.
func newTarget(object *apiregistration.APIService, certificate func() (*tls.Certificate, error), dialer *dialout.Dialer) *target {
	t := &target{spec: object.Spec}
	t.transport, t.err = newTransport(transport.TLSConfig{
		Insecure:   object.Spec.InsecureSkipTLSVerify,
		ServerName: object.Spec.Service.Name + "." + object.Spec.Service.Namespace + ".svc",
		CAData:     object.Spec.CABundle,
	}, certificate, dialer)
	return t
}

func newTransport(c transport.TLSConfig, certificate func() (*tls.Certificate, error), dialer *dialout.Dialer) (*http.Transport, error) {
	config, err := transport.TLSConfigFor(&transport.Config{TLS: c})
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.Dial,
		TLSClientConfig:     dialer.TLS(config),
		MaxIdleConnsPerHost: 25,
	}), nil
}

// same tells whether object is reached in the way of t.
func (t *target) same(object *apiregistration.APIService) bool {
	a, b := t.spec.Service, object.Spec.Service
	return a.Namespace == b.Namespace && a.Name == b.Name && t.spec.InsecureSkipTLSVerify == object.Spec.InsecureSkipTLSVerify && bytes.Equal(t.spec.CABundle, object.Spec.CABundle)
}

func (t *target) close() {
	if t.transport != nil {
		t.transport.CloseIdleConnections()
	}
}
