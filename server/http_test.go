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

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
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
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the answer has begun
			t.Fatal(err)
		}
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

// longStop is far more than a stop takes on a busy machine, so that one that takes half of it has
// waited for something that does not come.
const longStop = 10 * time.Minute

const watchMaps = "/api/v1/namespaces/default/configmaps?watch=1"

// stall opens a server with a request of each deaf client.
// There is more to send than fits on the way.
func stall(t *testing.T, path string) *Server {
	t.Helper()
	s := New(Config{ShutdownTimeout: longStop, RequestTimeout: longStop, Linger: time.Millisecond, Controllers: []string{}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	t.Cleanup(func() { s.Close() })
	maps := kubernetes.NewForConfigOrDie(s.InProcess(nil)).CoreV1().ConfigMaps("default")
	big := &corev1.ConfigMap{BinaryData: map[string][]byte{"noise": bytes.Repeat([]byte{7}, 700<<10)}}
	for i := range 24 {
		big.Name = fmt.Sprint("big-", i)
		if _, err := maps.Create(t.Context(), big, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, client := range deaf {
		client.ask(t, s, path)
	}
	return s
}

// Clients that do not read hold up no stop, and are no reason to call it a bad one.
func TestStopWithDeafClients(t *testing.T) {
	for _, path := range []string{watchMaps, "/api/v1/configmaps"} {
		s := stall(t, path)
		begun := time.Now()
		for ; s.guard.Blocked(50*time.Millisecond) < len(deaf); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("%s: only %d of %d clients are blocked", path, s.guard.Blocked(50*time.Millisecond), len(deaf))
			}
		}
		begun = time.Now()
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", path, err)
		}
		if took := time.Since(begun); took > longStop/2 {
			t.Errorf("%s: the stop took %v", path, took)
		}
	}
}

// Clients that do not read keep their place no longer than others.
func TestDeafClientsRunOutOfTime(t *testing.T) {
	for _, path := range []string{watchMaps + "&timeoutSeconds=1", "/api/v1/configmaps?timeout=1s"} {
		s := stall(t, path)
		for begun := time.Now(); s.guard.Running() > 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("%s: %d requests are still running", path, s.guard.Running())
			}
		}
	}
}

// WebSockets are written to past net/http.
func TestStopWithDeafWebSocket(t *testing.T) {
	s := stall(t, watchMaps)
	config, err := websocket.NewConfig("wss"+strings.TrimPrefix(s.URL(), "https")+watchMaps, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if config.TlsConfig, err = clientrest.TLSConfigFor(s.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	config.TlsConfig.NextProtos = nil
	ws, err := websocket.DialConfig(config) // and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begun); took > longStop/2 {
		t.Errorf("the stop took %v", took)
	}
}

// A body that never comes holds up no stop either, and its sender is told so.
func TestStopWithMuteClient(t *testing.T) {
	s := New(Config{ShutdownTimeout: longStop, RequestTimeout: longStop, Controllers: []string{}})
	idle(s) // who runs is counted
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	body, never := io.Pipe()
	defer never.Close()
	code := make(chan int, 1)
	client := apitest.Admin(t, s)
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
	for s.guard.Running() == 0 {
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begun); took > longStop/2 {
		t.Errorf("the stop took %v", took)
	}
	if got := <-code; got < http.StatusBadRequest {
		t.Errorf("a write without its body got %d", got)
	}
}
