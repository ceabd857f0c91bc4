package aggregator

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// aggregator is the user of requests that the server makes by itself to extension servers.
	aggregator = "system:kube-aggregator"

	checkAttempts = 5 // as upstream: a Service has several endpoints, of which one will do
	checkTimeout  = 5 * time.Second
	defaultPort   = 443
)

func portOf(object *apiregistration.APIService) int32 {
	if p := object.Spec.Service.Port; p != nil {
		return *p
	}
	return defaultPort
}

// Checker asks extension servers whether they are there. It does not verify their
// certificates: an impostor gains nothing but the condition Available.
type Checker struct {
	services *Services
	client   *http.Client
}

// NewChecker returns a Checker that finds addresses as s does. Close it.
func NewChecker(s *Services) (*Checker, error) {
	t, err := newTransport(transport.TLSConfig{Insecure: true}, func() (*tls.Certificate, error) { return s.certificate() }, s.dialer)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	return &Checker{services: s, client: &http.Client{
		Transport: t, Timeout: checkTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close gives up connections.
func (c *Checker) Close() { c.client.CloseIdleConnections() }

// Check asks for the document that object's server must have. It returns nil if one of
// several attempts succeeds, else what was wrong at the last, in upstream's words
// (kube-aggregator/pkg/controllers/status/remote).
func (c *Checker) Check(ctx context.Context, object *apiregistration.APIService) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan error, checkAttempts)
	for range checkAttempts {
		go func() { results <- c.attempt(ctx, object) }()
	}
	var err error
	for i := range checkAttempts {
		if err = <-results; err == nil {
			cancel()
			wait(results, checkAttempts-1-i)
			return nil
		}
	}
	cancel()
	return err
}

func wait(results <-chan error, n int) {
	for range n {
		<-results
	}
}

func (c *Checker) attempt(ctx context.Context, object *apiregistration.APIService) error {
	ref := object.Spec.Service
	at, err := c.services.resolver.ResolveEndpoint(ref.Namespace, ref.Name, portOf(object))
	if err != nil {
		return err
	}
	u := *at
	u.Path = documentPath(object)
	if err := c.get(ctx, u.String()); err != nil {
		return fmt.Errorf("failing or missing response from %s: %w", u.String(), err)
	}
	return nil
}

func documentPath(object *apiregistration.APIService) string {
	if object.Name == "v1." {
		return "/api/" + object.Spec.Version
	}
	return "/apis/" + object.Spec.Group + "/" + object.Spec.Version
}

func (c *Checker) get(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport.SetAuthProxyHeaders(r, aggregator, "", []string{user.SystemPrivilegedGroup}, nil)
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return fmt.Errorf("bad status from %s: %d", url, answer.StatusCode)
	}
	return nil
}
