package logtest

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a Log and its server and can break the connection at one exact
// place: where the client sends a marker.
type proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup
	sent     atomic.Int64 // pieces of data that clients have sent; what is short comes in one

	mu     sync.Mutex
	marker []byte
	mode   mode
	caught chan struct{} // closed when the marker was seen
	conns  map[net.Conn]bool
	closed bool
}

type mode int

const (
	pass    mode = iota
	lose         // cut the connection instead of forwarding the marker, each time
	swallow      // forward the marker once, then keep all answers back until cut
)

// through starts a proxy in front of the server of dsn and returns the DSN of the way
// through it.
func through(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	if q := u.Query(); u.Scheme != "mysql" && u.Scheme != "mariadb" {
		q.Set("sslmode", "disable") // the marker must be readable
		u.RawQuery = q.Encode()
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return p, u.String()
}

// arm sets what happens at marker; the channel is closed when it was seen.
func (p *proxy) arm(marker string, m mode) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.mode, p.caught = []byte(marker), m, make(chan struct{})
	return p.caught
}

func (p *proxy) disarm() { p.arm("", pass) }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		if !p.add(client, server) {
			return
		}
		c := &passage{proxy: p, client: client, server: server}
		p.wg.Go(c.forward)
		p.wg.Go(c.answer)
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
		if p.closed {
			c.Close()
		}
	}
	return !p.closed
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.cut()
	p.wg.Wait()
}

// see says what to do with data that comes after tail.
func (p *proxy) see(tail, data []byte) mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == pass || !bytes.Contains(append(bytes.Clone(tail), data...), p.marker) {
		return pass
	}
	select {
	case <-p.caught:
	default:
		close(p.caught)
	}
	m := p.mode
	if m == swallow {
		p.mode = pass
	}
	return m
}

// passage is one connection through the proxy.
type passage struct {
	proxy          *proxy
	client, server net.Conn

	mu    sync.Mutex
	quiet bool // answers are kept back
}

func (c *passage) forward() {
	defer c.server.Close()
	defer c.client.Close()
	buf, tail := make([]byte, 1<<16), []byte(nil)
	for {
		n, err := c.client.Read(buf)
		if err != nil {
			return
		}
		c.proxy.sent.Add(1)
		switch c.proxy.see(tail, buf[:n]) {
		case lose:
			return
		case swallow:
			c.mu.Lock()
			c.quiet = true
			c.mu.Unlock()
		}
		if _, err := c.server.Write(buf[:n]); err != nil {
			return
		}
		tail = append(tail[:0], buf[max(0, n-64):n]...)
	}
}

func (c *passage) answer() {
	buf := make([]byte, 1<<16)
	for {
		n, err := c.server.Read(buf)
		c.mu.Lock()
		quiet := c.quiet
		c.mu.Unlock()
		if quiet {
			_, _ = io.Copy(io.Discard, c.server)
			return // the client still waits; cut ends that
		}
		if n > 0 {
			if _, werr := c.client.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			c.client.Close()
			return
		}
	}
}
