package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/server/pki"
)

// served is a Transport on some listeners.
type served struct {
	t         *testing.T
	transport *Transport
	pki       *pki.PKI
	urls      []string
	release   chan struct{} // ends requests for /slow
	slow      sync.WaitGroup
}

// serveTransport serves a member at urls until the test ends. One that begins with "pages:" has pages only.
func serveTransport(t *testing.T, urls ...string) *served {
	t.Helper()
	p, err := pki.Open("", []string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, pki: p, release: make(chan struct{})}
	pages := http.NewServeMux()
	pages.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	pages.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.slow.Done()
		<-s.release
		fmt.Fprint(w, "done")
	})
	m := startMember(t, inMemory, Options{})
	s.transport = NewTransport(m.Server, pages, TransportOptions{TLS: &tls.Config{GetCertificate: p.Serving}})
	var listeners []Listener
	for _, u := range urls {
		u, pagesOnly := strings.CutPrefix(u, "pages:")
		a, err := ParseAddress(u)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Listen()
		if err != nil {
			t.Fatal(err)
		}
		l.PagesOnly = pagesOnly
		s.urls, listeners = append(s.urls, l.URL), append(listeners, l)
	}
	s.transport.Serve(listeners...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.transport.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// clientTLS trusts the server and offers protocols.
func (s *served) clientTLS(protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: s.pki.ClientCAs(), NextProtos: protocols, MinVersion: tls.VersionTLS12}
}

// put sends a request of gRPC.
func (s *served) put(url string) error {
	s.t.Helper()
	scheme, address, _ := strings.Cut(url, "://")
	creds := insecure.NewCredentials()
	if scheme == "https" || scheme == "unixs" {
		c := s.clientTLS()
		c.ServerName = "localhost"
		creds = credentials.NewTLS(c)
	}
	if strings.HasPrefix(scheme, "unix") {
		address = "unix:" + address
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, err = pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("a"), Value: make([]byte, 1<<20)}, grpc.WaitForReady(true))
	return err
}

func (s *served) get(client *http.Client, url string) string {
	s.t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// TestTransport sends gRPC and HTTP to the same port, with TLS and without, and by sockets.
func TestTransport(t *testing.T) {
	dir, err := os.MkdirTemp("", "plinth") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := serveTransport(t, "http://127.0.0.1:0", "https://127.0.0.1:0", "unix://"+dir+"/a", "unixs://"+dir+"/b")
	for _, url := range s.urls {
		if err := s.put(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	plain, secure := s.urls[0], s.urls[1]
	if got := s.get(http.DefaultClient, plain+"/page"); got != "HTTP/1.1" {
		t.Errorf("http: %q", got)
	}
	for want, protocols := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": {"h2", "http/1.1"}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.clientTLS(protocols...), ForceAttemptHTTP2: len(protocols) > 1}}
		if got := s.get(client, secure+"/page"); got != want {
			t.Errorf("https with %v: %q", protocols, got)
		}
		client.CloseIdleConnections()
	}
	// A client that does not say what it speaks.
	conn, err := tls.Dial("tcp", strings.TrimPrefix(secure, "https://"), s.clientTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "P")
	time.Sleep(10 * time.Millisecond) // so that the method comes in two parts
	fmt.Fprint(conn, "OST /page HTTP/1.0\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "HTTP/1.0") {
		t.Errorf("without ALPN: %q, %v", answer, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info, err)
	}
}

// TestTransportPagesOnly has listeners that show no key.
func TestTransportPagesOnly(t *testing.T) {
	s := serveTransport(t, "pages:http://127.0.0.1:0", "pages:https://127.0.0.1:0")
	for _, url := range s.urls {
		for _, protocols := range [][]string{{"http/1.1"}, {"h2", "http/1.1"}, {"h2"}} {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.clientTLS(protocols...), ForceAttemptHTTP2: protocols[0] == "h2"}}
			if got := s.get(client, url+"/version"); !strings.Contains(got, "etcdserver") {
				t.Errorf("%s with %v: %q", url, protocols, got)
			}
			resp, err := client.Post(url+"/etcdserverpb.KV/Range", "application/grpc", strings.NewReader("\x00\x00\x00\x00\x03\x0a\x01a"))
			if err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s with %v: gRPC is answered: %v, %v", url, protocols, resp, err)
			}
			if err == nil {
				resp.Body.Close()
			}
			client.CloseIdleConnections()
		}
	}
}

// TestTransportBoth has a gRPC client that would speak HTTP/1, too.
func TestTransportBoth(t *testing.T) {
	s := serveTransport(t, "https://127.0.0.1:0")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.clientTLS("h2", "http/1.1"), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	message := "\x00\x00\x00\x00\x03\x0a\x01a" // a range of the key a
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[0]+"/etcdserverpb.KV/Range", strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if got := resp.Trailer.Get("Grpc-Status"); err != nil || got != "0" || len(body) < 5 {
		t.Errorf("status %q, %d bytes, %v", got, len(body), err)
	}
}

// TestTransportStop stops while a request runs, which is answered, and while connections say nothing.
func TestTransportStop(t *testing.T) {
	s := serveTransport(t, "http://127.0.0.1:0", "https://127.0.0.1:0")
	for _, url := range s.urls {
		_, address, _ := strings.Cut(url, "://")
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	s.slow.Add(1)
	answer := make(chan string, 1)
	go func() { answer <- s.get(http.DefaultClient, s.urls[0]+"/slow") }()
	s.slow.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.transport.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped, %v, although a request runs", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(s.release)
	if got := <-answer; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	_, address, _ := strings.Cut(s.urls[0], "://")
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the stop: %v", err)
	}
}

// TestTransportCutOff has a request that does not end in time.
func TestTransportCutOff(t *testing.T) {
	s := serveTransport(t, "http://127.0.0.1:0")
	s.slow.Add(1)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Get(s.urls[0] + "/slow")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	s.slow.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.transport.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	close(s.release)
}

// TestTransportHostile sends what is no request. Others are served all the same.
func TestTransportHostile(t *testing.T) {
	s := serveTransport(t, "http://127.0.0.1:0", "https://127.0.0.1:0")
	for _, text := range []string{"", "P", "PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff", "\x16\x03\x01\x02\x00\x01", "GET", "\x00\x00\x00", strings.Repeat("A", 1<<20)} {
		for _, url := range s.urls {
			_, address, _ := strings.Cut(url, "://")
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, text) // the server may have closed it
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}
	for _, url := range s.urls {
		if err := s.put(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestTransportTooLarge has a message above the limit.
func TestTransportTooLarge(t *testing.T) {
	s := serveTransport(t, "http://127.0.0.1:0")
	conn, err := grpc.NewClient(strings.TrimPrefix(s.urls[0], "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = pb.NewKVClient(conn).Put(t.Context(), &pb.PutRequest{Key: []byte("a"), Value: make([]byte, 3<<20)}, grpc.WaitForReady(true))
	if status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"http://127.0.0.1:2379":   {"http", "127.0.0.1:2379"},
		"https://[::1]:0":         {"https", "[::1]:0"},
		"http://localhost:2379/":  {"http", "localhost:2379"},
		"unix:///run/etcd.sock":   {"unix", "/run/etcd.sock"},
		"unixs://etcd.sock":       {"unixs", "etcd.sock"},
		"unix://localhost:234000": {"unix", "localhost:234000"},
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "127.0.0.1:2379", "http://127.0.0.1", "http://h:1/path", "http://u:p@h:1", "tcp://h:1", "unix://", "http://h:x", "http://h:1?a=b", "http://%zz"} {
		if got, err := ParseAddress(text); err == nil || !strings.Contains(err.Error(), "write http://HOST:PORT") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"http://127.0.0.1:65536":               "write a port up to 65535",
		"unix:///" + strings.Repeat("a", 1000): "the path has 1001 bytes, and that of a socket may have 1",
	} {
		if got, err := ParseAddress(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, local := range map[string]bool{"http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true, "unix://a": true, "http://0.0.0.0:1": false, "http://:1": false, "https://192.0.2.1:1": false} {
		a, err := ParseAddress(text)
		if err != nil || a.Local() != local {
			t.Errorf("%s: local: %v, %v", text, a.Local(), err)
		}
	}
}

// TestListen takes addresses that are taken, and a socket that was left behind.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	socket, err := net.Listen("unix", "taken")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	left, err := net.Listen("unix", "left")
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	if err := os.WriteFile("file", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for a, want := range map[Address]string{
		{"http", taken.Addr().String()}: "address already in use; write another port, or 127.0.0.1:0",
		{"http", "192.0.2.1:1"}:         "write an address of this machine",
		{"unix", "taken"}:               "unix://taken: address already in use; write another path",
		{"unix", "file"}:                "unix://file: something else than a socket is there; write a path where nothing is",
		{"unix", "."}:                   "unix://.: something else than a socket is there; write a path where nothing is",
		{"unix", "no/such/dir"}:         "write a path in a directory that is there",
	} {
		if l, err := a.Listen(); err == nil || !strings.Contains(err.Error(), want) {
			if err == nil {
				l.Close()
			}
			t.Errorf("%s: %v; want %s", a, err, want)
		}
	}
	l, err := Address{"unix", "left"}.Listen()
	if err != nil {
		t.Fatalf("a socket that was left behind: %v", err)
	}
	l.Close()
	if text, err := os.ReadFile("file"); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
