package apiload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Client is one client program's connection: client-go sends all requests over one, too.
type Client struct {
	http      *http.Client
	transport *http.Transport
	base      string

	accept, contentType string // empty: JSON
}

// New makes a client, which connects at its first request.
func New(config *clientrest.Config) (*Client, error) {
	url, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	secure, err := clientrest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:     secure,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64, // of HTTP/1.1, which has a connection for each request at a time
		HTTP2: &http.HTTP2Config{
			// As in client-go: a list must not wait for a window update every 64 KiB.
			MaxReceiveBufferPerStream:     4 << 20,
			MaxReceiveBufferPerConnection: 1 << 30,
		},
	}
	wrapped, err := clientrest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &Client{http: &http.Client{Transport: wrapped}, transport: transport, base: strings.TrimSuffix(url.String(), "/")}, nil
}

// As returns a client on the same connection with other media types.
func (c *Client) As(accept, contentType string) *Client {
	as := *c
	as.accept, as.contentType = accept, contentType
	return &as
}

func orJSON(mediaType string) string {
	if mediaType == "" {
		return "application/json"
	}
	return mediaType
}

// Clients are those that a load is spread over.
type Clients []*Client

// Of is the client of a worker.
func (c Clients) Of(worker int) *Client { return c[worker%len(c)] }

// Dial makes clients that are connected: each has got what is at path.
func Dial(ctx context.Context, config *clientrest.Config, n int, path string) (Clients, error) {
	clients := make(Clients, n)
	for i := range clients {
		c, err := New(config)
		if err != nil {
			return nil, err
		}
		if _, err := c.Do(ctx, http.MethodGet, path, nil, nil); err != nil {
			return nil, err
		}
		clients[i] = c
	}
	return clients, nil
}

// DialFile is Dial with the file of a kubeconfig.
func DialFile(ctx context.Context, kubeconfig string, n int, path string) (Clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return Dial(ctx, config, n, path)
}

// StartOwn starts plinth serve on a database of its own.
func StartOwn(ctx context.Context, command []string, dir, dsn string) (*measure.Own, error) {
	return measure.StartOwn(ctx, append(slices.Clone(command), "--listen", "127.0.0.1:0"), dir, dsn)
}

// Close closes the connections.
func (c Clients) Close() {
	for _, one := range c {
		one.transport.CloseIdleConnections()
	}
}

// Do sends one request and reads the whole answer, into a buffer if there is one, and returns its
// length. A status other than 2xx is an error.
func (c *Client) Do(ctx context.Context, method, path string, body []byte, into *bytes.Buffer) (n int64, err error) {
	response, err := c.Send(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if into == nil {
		return io.Copy(io.Discard, response.Body)
	}
	into.Reset()
	return into.ReadFrom(response.Body)
}

// Send sends one request. The caller closes the body of the answer. A status other than 2xx is an error.
func (c *Client) Send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", orJSON(c.accept))
	if body != nil {
		request.Header.Set("Content-Type", orJSON(c.contentType))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 || response.TLS != nil && response.ProtoMajor != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		response.Body.Close()
		return nil, &Error{response.StatusCode, fmt.Sprintf("%s %s: %s %s: %s", method, path, response.Proto, response.Status, bytes.TrimSpace(text))}
	}
	return response, nil
}

// Error is an answer that is none of success.
type Error struct {
	Code int // of HTTP
	text string
}

func (e *Error) Error() string { return e.text }

// Code returns the status of an answer that was an error, 0 if there was no answer.
func Code(err error) int {
	if failed := new(Error); errors.As(err, &failed) {
		return failed.Code
	}
	return 0
}

// UntilDone tries a request every millisecond, for a minute at most.
func (c *Client) UntilDone(ctx context.Context, method, path string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := c.Do(ctx, method, path, body, nil)
		if err == nil {
			return nil
		}
		if sleep.For(ctx, time.Millisecond) != nil {
			return fmt.Errorf("wait for %s: %w", path, err)
		}
	}
}
