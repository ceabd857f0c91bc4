package custom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/dialout"
)

// Converters makes the converters between the versions of definitions, and owns the calls to
// conversion webhooks. Upstream's converter does not get the context of the request: a call
// that outlasts its request goes on for at most 30 seconds, the timeout of the webhooks'
// client, and Close ends it.
type Converters struct {
	factory *conversion.CRConverterFactory
	dial    dialout.Func    // nil: a net.Dialer
	ctx     context.Context // of all calls
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

// NewConverters returns converters that find the services of webhooks through resolver, and connect to
// webhooks by dial, which may be nil.
func NewConverters(resolver webhook.ServiceResolver, dial dialout.Func) (*Converters, error) {
	c := &Converters{dial: dial}
	c.ctx, c.stop = context.WithCancel(context.Background())
	var err error
	if c.factory, err = conversion.NewCRConverterFactory(resolver, c.ownCalls); err != nil {
		return nil, fmt.Errorf("converters of custom resources: %w", err)
	}
	return c, nil
}

// Close ends all calls, waits for them, and makes later calls fail.
func (c *Converters) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.calls.Wait()
}

// begin counts a call. It is false after Close.
func (c *Converters) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.calls.Add(1)
	}
	return !c.closed
}

var errStopping = errors.New("call conversion webhook: the server is stopping")

// mostCalls bounds the calls to one webhook at a time, so that a webhook that hangs holds no
// more goroutines and connections.
const mostCalls = 128

// converter converts between the versions of one definition.
type converter struct {
	owner *Converters
	calls bool          // a webhook is called
	slots chan struct{} // for calls
	// convert changes its input if no webhook is called.
	convert runtime.ObjectConvertor
}

func (c *Converters) of(crd *apiextensionsv1.CustomResourceDefinition) (*converter, error) {
	_, convert, err := c.factory.NewConverter(crd)
	if err != nil {
		return nil, fmt.Errorf("conversion of %s: %w", crd.Name, err)
	}
	return &converter{owner: c, calls: callsWebhook(crd), slots: make(chan struct{}, mostCalls), convert: convert}, nil
}

func callsWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// to converts an object or a list. It does not change in, and returns when ctx ends.
func (c *converter) to(ctx context.Context, in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	if !c.calls || gv == runtime.GroupVersioner(in.GetObjectKind().GroupVersionKind().GroupVersion()) {
		return c.convert.ConvertToVersion(in.DeepCopyObject(), gv)
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !c.owner.begin() {
		<-c.slots
		return nil, errStopping
	}
	type result struct {
		obj runtime.Object
		err error
	}
	done := make(chan result, 1)
	in = in.DeepCopyObject() // the caller may return before the call ends
	go func() {
		defer c.owner.calls.Done()
		defer func() { <-c.slots }()
		obj, err := c.call(in, gv)
		done <- result{obj, err}
	}()
	select {
	case r := <-done:
		return r.obj, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// call turns a panic into an error: a webhook's answer must not end the process.
func (c *converter) call(in runtime.Object, gv runtime.GroupVersioner) (out runtime.Object, err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("conversion webhook for %v failed: %v", in.GetObjectKind().GroupVersionKind(), wrong)
		}
	}()
	return c.convert.ConvertToVersion(in, gv)
}

// ownCalls makes the clients of webhooks end their calls at Close, and limits the length of
// answers.
func (c *Converters) ownCalls(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	own := func(config *clientrest.Config, err error) (*clientrest.Config, error) {
		if err == nil {
			if c.dial != nil {
				config.Dial = c.dial
				// client-go keeps no transport with a proxy for ever; this one would be taken anyway.
				config.Proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
			}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &ownedCall{c.ctx, next} })
		}
		return config, err
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*clientrest.Config, error) { return own(resolver.ClientConfigFor(hostPort)) },
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*clientrest.Config, error) {
			return own(resolver.ClientConfigForService(name, namespace, port))
		},
	}
}

// ownedCall is the transport of calls that end with ctx.
type ownedCall struct {
	ctx  context.Context
	next http.RoundTripper
}

// mostAnswer bounds the body of a webhook's answer, in bytes. It is several times the size of
// a call's body.
const mostAnswer = 32 << 20

func (t *ownedCall) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() {
		stop()
		cancel()
	}
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, left: mostAnswer, end: end}
	return resp, nil
}

// answer is the body of a webhook's answer.
type answer struct {
	io.ReadCloser
	left int64
	end  func()
}

func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", int64(mostAnswer))
	}
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, err
}

func (a *answer) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}
