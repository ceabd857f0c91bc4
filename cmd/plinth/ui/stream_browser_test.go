package ui

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/servertest"
)

// line passes connections on to a server, and can be cut.
type line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex // guards what follows
	off   bool
	conns map[net.Conn]bool
}

// newLine returns a line to a server, and a configuration that uses it.
func newLine(t *testing.T, config *clientrest.Config) (*line, *clientrest.Config) {
	t.Helper()
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, target: u.Host, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); l.cut(true) })
	go l.run()
	config = clientrest.CopyConfig(config)
	config.Host = "https://" + listener.Addr().String()
	return l, config
}

func (l *line) run() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(c)
	}
}

func (l *line) carry(c net.Conn) {
	defer c.Close()
	l.mu.Lock()
	off := l.off
	l.conns[c] = true
	l.mu.Unlock()
	if off {
		return
	}
	s, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer s.Close()
	go func() { _, _ = io.Copy(s, c); s.Close() }()
	_, _ = io.Copy(c, s)
}

// cut ends all connections; off refuses new ones.
func (l *line) cut(off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = off
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}

// TestListResumed: a list goes on when its watch has ended, and when the server was away, without missing anything.
func TestListResumed(t *testing.T) {
	srv := servertest.Start(t)
	client := dynamic.NewForConfigOrDie(srv.Config).Resource(configMaps).Namespace("default")
	create := func(name string) {
		t.Helper()
		if _, err := client.Create(t.Context(), configMap(name, nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l, config := newLine(t, srv.Config)
	base, address := local(t, config)
	b := tabAt(t, base, address)
	create("before")
	b.open("kinds/configmaps?ns=default")
	b.sees("before")
	create("live")
	b.sees("live")
	l.cut(false) // the watch ends
	create("after-the-watch")
	b.sees("after-the-watch")
	l.cut(true)
	create("while-away")
	b.sees("The server is away")
	l.cut(false)
	b.sees("while-away")
	create("when-back")
	b.sees("when-back")
}
