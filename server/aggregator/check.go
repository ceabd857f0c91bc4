package aggregator

import (
	"context"
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

// check asks for the document that the server must have. It returns nil if one of
// several attempts succeeds, else what was wrong at the last, in upstream's words
// (kube-aggregator/pkg/controllers/status/remote).
func (x *Service) check(ctx context.Context) error {
	if x.target.err != nil {
		return x.target.err
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan error, checkAttempts)
	for range checkAttempts {
		go func() { results <- x.attempt(ctx) }()
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

func (x *Service) attempt(ctx context.Context) error {
	ref := x.Object.Spec.Service
	at, err := x.services.resolver.ResolveEndpoint(ref.Namespace, ref.Name, portOf(x.Object))
	if err != nil {
		return err
	}
	u := *at
	u.Path = documentPath(x.Object)
	if err := x.ask(ctx, u.String()); err != nil {
		if ctx.Err() == nil {
			x.target.transport.CloseIdleConnections() // another connection may lead to another endpoint
		}
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

func (x *Service) ask(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport.SetAuthProxyHeaders(r, aggregator, "", []string{user.SystemPrivilegedGroup}, nil)
	client := &http.Client{
		Transport: x.target.transport, Timeout: checkTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return fmt.Errorf("bad status from %s: %d", url, answer.StatusCode)
	}
	return nil
}
