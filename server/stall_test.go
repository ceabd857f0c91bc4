package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// deaf are clients that send a request and never read its answer.
var deaf = []struct {
	name string
	ask  func(t *testing.T, s *Server, path string)
}{
	{"HTTP2 stream", func(t *testing.T, s *Server, path string) {
		config := s.RESTConfig()
		config.DisableCompression = true
		client, err := clientrest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
	}},
	{"HTTP2 connection", func(t *testing.T, s *Server, path string) {
		frozen := &freezer{frozen: make(chan struct{}), closed: make(chan struct{})}
		config := s.RESTConfig()
		config.DisableCompression = true
		config.Dial = frozen.dial
		client, err := clientrest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		close(frozen.frozen)
		t.Cleanup(func() { close(frozen.closed); resp.Body.Close() })
	}},
	{"HTTP1", func(t *testing.T, s *Server, path string) {
		config, err := clientrest.TLSConfigFor(s.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		config.NextProtos = []string{"http/1.1"}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: plinth\r\n\r\n", path)
	}},
	{"in process", func(t *testing.T, s *Server, path string) {
		client, err := clientrest.HTTPClientFor(s.InProcess(nil))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(s.InProcess(nil).Host + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
	}},
}

// freezer makes connections that stop reading when frozen is closed, until closed is.
type freezer struct {
	net.Conn
	frozen, closed chan struct{}
}

func (f *freezer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &freezer{conn, f.frozen, f.closed}, err
}

func (f *freezer) Read(p []byte) (int, error) {
	select {
	case <-f.frozen:
		<-f.closed
		return 0, net.ErrClosed
	default:
		return f.Conn.Read(p)
	}
}

const watchMaps = "/api/v1/namespaces/default/configmaps?watch=1"

// stall opens a server with a request of a deaf client, which is blocked when it returns.
func stall(t *testing.T, path string, ask func(*testing.T, *Server, string)) *Server {
	t.Helper()
	s := New(Config{ShutdownTimeout: 40 * time.Second, Linger: time.Millisecond, Controllers: []string{}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	maps := kubernetes.NewForConfigOrDie(s.InProcess(nil)).CoreV1().ConfigMaps("default")
	big := &corev1.ConfigMap{BinaryData: map[string][]byte{"noise": bytes.Repeat([]byte{7}, 700<<10)}}
	for i := range 24 {
		big.Name = fmt.Sprint("big-", i)
		if _, err := maps.Create(t.Context(), big, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, s, path)
	for begun := time.Now(); !isBlocked(s); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the client has room for everything")
		}
	}
	return s
}

func isBlocked(s *Server) bool {
	for _, x := range s.calls.all() {
		if x.out.blocked.since(time.Now()) > 50*time.Millisecond {
			return true
		}
	}
	return false
}

// Clients that do not read hold up no stop, and are no reason to call it a bad one.
func TestStopWithDeafClients(t *testing.T) {
	for _, client := range deaf {
		for _, path := range []string{watchMaps, "/api/v1/configmaps"} {
			t.Run(client.name+path, func(t *testing.T) {
				t.Parallel()
				s := stall(t, path, client.ask)
				begun := time.Now()
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(begun); took > s.config.ShutdownTimeout/2 {
					t.Errorf("the stop took %v", took)
				}
			})
		}
	}
}

// Clients that do not read keep their place no longer than others.
func TestDeafClientsRunOutOfTime(t *testing.T) {
	for _, client := range deaf {
		for _, path := range []string{watchMaps + "&timeoutSeconds=1", "/api/v1/configmaps?timeout=1s"} {
			t.Run(client.name+path, func(t *testing.T) {
				t.Parallel()
				s := stall(t, path, client.ask)
				for begun := time.Now(); s.running.count.Load() > 0; time.Sleep(time.Millisecond) {
					if time.Since(begun) > 30*time.Second {
						t.Fatal("the request is still running")
					}
				}
			})
		}
	}
}

// A body that never comes holds up no stop either, and its sender is told so.
func TestStopWithMuteClient(t *testing.T) {
	s := New(Config{ShutdownTimeout: 40 * time.Second, Linger: time.Second, Controllers: []string{}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	body, never := io.Pipe()
	defer never.Close()
	code := make(chan int, 1)
	client := admin(t, s)
	go func() {
		resp, err := client.Post(s.URL()+"/api/v1/namespaces/default/configmaps", "application/json", body)
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	for s.running.count.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begun); took > s.config.ShutdownTimeout/2 {
		t.Errorf("the stop took %v", took)
	}
	if got := <-code; got < http.StatusBadRequest {
		t.Errorf("a write without its body got %d", got)
	}
}
