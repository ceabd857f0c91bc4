package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// connections is the number of HTTP/2 connections that the load of a server measurement is spread
// over. Each stands for one client program: client-go sends all requests over one connection.
const connections = 8

// client is one client program's connection.
type client struct {
	http *http.Client
	base string

	accept, contentType string // empty: JSON
}

// as returns a client on the same connection with other media types.
func (c *client) as(accept, contentType string) *client {
	return &client{http: c.http, base: c.base, accept: accept, contentType: contentType}
}

func orJSON(mediaType string) string {
	if mediaType == "" {
		return "application/json"
	}
	return mediaType
}

// dial makes a client with the admin's certificate. It connects at the first request.
func (p *process) dial() (*client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.target.CA) {
		return nil, errors.New("the server's CA cannot be read")
	}
	cert, err := tls.X509KeyPair(p.target.Cert, p.target.Key)
	if err != nil {
		return nil, fmt.Errorf("read the client's certificate: %w", err)
	}
	return &client{base: p.target.URL, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			// As in client-go: a list must not wait for a window update every 64 KiB.
			MaxReceiveBufferPerStream:     4 << 20,
			MaxReceiveBufferPerConnection: 1 << 30,
		},
	}}}, nil
}

// dialMany makes clients that are connected.
func (p *process) dialMany(ctx context.Context, n int, path string) ([]*client, error) {
	clients := make([]*client, n)
	for i := range clients {
		c, err := p.dial()
		if err != nil {
			return nil, err
		}
		if _, err := c.do(ctx, http.MethodGet, path, nil, nil); err != nil {
			return nil, err
		}
		clients[i] = c
	}
	return clients, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

// do sends one request and reads the whole answer, into a buffer if there is one, and returns its
// length. A status other than 2xx is an error.
func (c *client) do(ctx context.Context, method, path string, body []byte, into *bytes.Buffer) (n int64, err error) {
	response, err := c.send(ctx, method, path, body)
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

func (c *client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
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
	if response.StatusCode/100 != 2 || response.ProtoMajor != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s %s: %s", method, path, response.Proto, response.Status, text)
	}
	return response, nil
}

// untilReady waits for /readyz.
func (c *client) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := c.do(ctx, http.MethodGet, "/readyz", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for /readyz: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
}
