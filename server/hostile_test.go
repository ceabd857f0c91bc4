package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
)

// The tests of this file attack a server, and look at its memory, its goroutines and at what an
// honest client gets meanwhile. `make test-hostile` runs them with scale times as many clients.

// scale makes the attacks bigger.
func scale() int {
	if os.Getenv("PLINTH_TEST_HOSTILE") != "" {
		return 40
	}
	return 1
}

// siege is a server under attack.
type siege struct {
	*testing.T
	s      *Server
	honest *http.Client
	before footprint
	conns  []net.Conn // of the attackers
}

// footprint is what the process has: the server and the attackers.
type footprint struct {
	goroutines int
	heap       uint64
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d MiB", f.goroutines, f.heap>>20)
}

func footprintNow() footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapInuse + m.StackInuse}
}

func besiege(t *testing.T, c Config) *siege {
	t.Helper()
	if c.RequestTimeout == 0 {
		c.RequestTimeout = time.Minute // no honest request takes that long, also on a busy machine
	}
	s := start(t, c)
	g := &siege{T: t, s: s, honest: apitest.Admin(t, s)}
	g.serve("before")
	g.begin()
	return g
}

// begin remembers what the process has before the attack.
func (g *siege) begin() {
	g.before = footprintNow()
	g.Logf("before: %v", g.before)
}

// serve asks as an honest client. The times are far above the usual: the machine may be busy.
func (g *siege) serve(when string) {
	g.Helper()
	var slowest time.Duration
	for range 5 {
		begun := time.Now()
		code, body := g.get("/api/v1/namespaces/default")
		took := time.Since(begun)
		if code != 200 || took > 30*time.Second {
			g.Errorf("%s: %d after %v: %s", when, code, took, body)
		}
		slowest = max(slowest, took)
	}
	g.Logf("%s: an honest client waits %v at most", when, slowest.Round(10*time.Microsecond))
}

// get asks as an honest client, which connects again if the server has closed its idle connection
// because there were too many.
func (g *siege) get(path string) (code int, body string) {
	g.Helper()
	apitest.Eventually(g.T, "an honest client is answered", func() bool {
		resp, err := g.honest.Get(g.s.URL() + path)
		if err != nil {
			g.Logf("an honest client connects again: %v", err)
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		code, body = resp.StatusCode, string(text)
		return err == nil
	})
	return code, body
}

// bounded checks what the attack costs while it lasts.
func (g *siege) bounded(goroutines int, heap uint64) {
	g.Helper()
	g.serve("during the attack")
	now := footprintNow()
	g.Logf("during the attack: %v", now)
	if n := now.goroutines - g.before.goroutines; n > goroutines {
		g.Errorf("%d goroutines more, want at most %d", n, goroutines)
	}
	if now.heap > g.before.heap+heap {
		g.Errorf("%d MiB more, want at most %d", (now.heap-g.before.heap)>>20, heap>>20)
	}
}

// over ends the attackers' connections, and checks that nothing is left of the attack.
func (g *siege) over() {
	g.Helper()
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
	var now footprint
	apitest.Eventually(g.T, "goroutines and memory are as before", func() bool {
		now = footprintNow()
		return now.goroutines <= g.before.goroutines+20 && now.heap <= g.before.heap+32<<20
	})
	g.Logf("after the attack: %v", now)
	g.serve("after the attack")
}

// dial opens a connection with TLS, as nobody.
func (g *siege) dial(protocol string) *tls.Conn {
	g.Helper()
	raw, err := net.Dial("tcp", strings.TrimPrefix(g.s.URL(), "https://"))
	must(g.T, err)
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	g.conns = append(g.conns, raw)
	g.Cleanup(func() { raw.Close() })
	return c
}

// shaken is dial with the handshake done; nil if the server has refused.
func (g *siege) shaken(protocol string) *tls.Conn {
	c := g.dial(protocol)
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	defer cancel()
	if c.HandshakeContext(ctx) != nil {
		return nil
	}
	return c
}

// adminConn is a connection of HTTP/2 as the admin.
func (g *siege) adminConn() *http2Conn {
	g.Helper()
	config, err := rest.TLSConfigFor(g.s.RESTConfig())
	must(g.T, err)
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", strings.TrimPrefix(g.s.URL(), "https://"), config)
	must(g.T, err)
	g.conns = append(g.conns, c)
	g.Cleanup(func() { c.Close() })
	return newHTTP2(g.T, c)
}

// http2Conn writes frames as it likes.
type http2Conn struct {
	*http2.Framer
	conn net.Conn
	t    *testing.T
	next uint32
}

func newHTTP2(t *testing.T, c net.Conn) *http2Conn {
	t.Helper()
	_, err := io.WriteString(c, http2.ClientPreface)
	must(t, err)
	h := &http2Conn{http2.NewFramer(c, c), c, t, 1}
	must(t, h.WriteSettings())
	return h
}

// ask sends the headers of a request, and returns its stream.
func (h *http2Conn) ask(method, path string, end bool) (uint32, error) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "plinth"}, {":path", path}, {"content-type", "application/json"}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	stream := h.next
	h.next += 2
	return stream, h.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

// Connections that ask nothing, and such that never end their headers, are closed when there are
// too many.
func TestHostileConnections(t *testing.T) {
	const most = 50
	for name, attack := range map[string]func(g *siege){
		"no handshake": func(g *siege) { _ = g.dial("http/1.1") },
		"idle":         func(g *siege) { g.shaken("http/1.1") },
		"idle, HTTP/2": func(g *siege) {
			if c := g.shaken("h2"); c != nil {
				_, _ = io.WriteString(c, http2.ClientPreface)
			}
		},
		"slow headers": func(g *siege) {
			if c := g.shaken("http/1.1"); c != nil {
				_, _ = io.WriteString(c, "GET /version HTTP/1.1\r\nHost: plinth\r\nX-Slow: ")
			}
		},
		"large frames": func(g *siege) {
			if c := g.shaken("h2"); c != nil {
				_, _ = io.WriteString(c, http2.ClientPreface)
				f := http2.NewFramer(c, c)
				_ = f.WriteSettings()
				_ = f.WriteRawFrame(http2.FrameType(0xf0), 0, 0, make([]byte, 250<<10))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := besiege(t, Config{MaxConnections: most})
			for range 3 * most * scale() {
				attack(g)
			}
			apitest.Eventually(t, "connections are closed", func() bool {
				_, metrics := g.get("/metrics")
				var open int
				_, at, _ := strings.Cut(metrics, "\nplinth_connections_open ")
				_, err := fmt.Sscan(at, &open)
				return err == nil && open <= most
			})
			g.bounded(5*most, 64<<20)
			g.over()
		})
	}
}

// Streams that are reset as soon as they are opened do not pile up.
func TestHostileResets(t *testing.T) {
	g := besiege(t, Config{})
	c := g.adminConn()
	for range 3000 * scale() {
		stream, err := c.ask("GET", "/api/v1/namespaces", true)
		if err == nil {
			err = c.WriteRSTStream(stream, http2.ErrCodeCancel)
		}
		if err != nil {
			break // the server has closed the connection
		}
	}
	g.bounded(6000, 256<<20) // 1000 handlers, and as many as wait for one
	g.over()
}

// Bodies that never come and answers that nobody reads end with the time of a request.
func TestHostileStalls(t *testing.T) {
	g := besiege(t, Config{RequestTimeout: 20 * time.Second})
	g.fillConfigMaps(20)
	g.begin()
	attackers := 1 + scale()/4
	for range attackers {
		c := g.adminConn()
		for range 50 {
			stream, err := c.ask("POST", "/api/v1/namespaces/default/configmaps", false)
			must(t, err)
			must(t, c.WriteData(stream, false, []byte(`{"metadata":{`)))
			_, err = c.ask("GET", "/api/v1/namespaces/default/configmaps", true) // 10 MB, of which nothing is read
			must(t, err)
			_, err = c.ask("GET", "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0", true)
			must(t, err)
		}
	}
	g.bounded(attackers*1000, uint64(attackers)*256<<20)
	apitest.Eventually(t, "requests end", func() bool { return g.s.guard.Running() <= int64(attackers)*50+5 }) // but for the watches
	g.over()
}

// What is too large or too deep is refused at once.
func TestHostileBodies(t *testing.T) {
	g := besiege(t, Config{})
	const configmaps = "/api/v1/namespaces/default/configmaps"
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	const mega = 1 << 20
	for _, tt := range []struct {
		name, method, path, media, body string
		codes                           []int
	}{
		{"too large", "POST", configmaps, "application/json", `{"data":{"a":"` + strings.Repeat("x", 4*mega) + `"}}`, []int{413}},
		{"deep lists", "POST", configmaps, "application/json", deep("[", "", "]", mega), []int{400}},
		{"deep objects", "POST", configmaps, "application/json", deep(`{"a":`, "1", "}", mega/4), []int{400}},
		{"deep unknown field", "POST", configmaps, "application/json", `{"metadata":{"name":"deep"},"x":` + deep(`{"a":`, "1", "}", mega/4) + `}`, []int{400}},
		{"deep, not ended", "POST", configmaps, "application/json", strings.Repeat(`{"a":[`, mega/3), []int{400}},
		{"deep YAML", "POST", configmaps, "application/yaml", deep("[", "", "]", mega), []int{400}},
		{"deep YAML by indentation", "POST", configmaps, "application/yaml", indented(1500), []int{422}},
		{"laughs", "POST", configmaps, "application/yaml", laughs(), []int{413}},
		{"protobuf that lies", "POST", configmaps, "application/vnd.kubernetes.protobuf", "k8s\x00\x0a\xff\xff\xff\xff\x07" + strings.Repeat("\x0a", mega), []int{400}},
		{"deep merge patch", "PATCH", configmaps + "/kube-root-ca.crt", "application/merge-patch+json", deep(`{"a":`, "1", "}", mega/4), []int{400, 404}},
		{"deep strategic patch", "PATCH", "/api/v1/namespaces/default", "application/strategic-merge-patch+json", deep(`{"a":`, "1", "}", mega/4), []int{400}},
		{"many operations", "PATCH", "/api/v1/namespaces/default", "application/json-patch+json", "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/a","value":1},`, 20000), ",") + "]", []int{413}},
		{"copies that double", "PATCH", "/api/v1/namespaces/default", "application/json-patch+json", doubled(), []int{400, 413, 422}},
		{"deep apply", "PATCH", "/api/v1/namespaces/default?fieldManager=me", "application/apply-patch+yaml", deep(`{"a":`, "1", "}", mega/4), []int{400}},
		{"deep options", "DELETE", configmaps + "/none", "application/json", deep(`{"a":`, "1", "}", mega/4), []int{400}},
		{"long selector", "GET", configmaps + "?labelSelector=a+in+(" + strings.Repeat("x,", 100000) + "x)", "", "", []int{200, 400, 431, 414}},
		{"many parameters", "GET", configmaps + "?" + strings.Repeat("a=b&", 100000), "", "", []int{200, 400, 431, 414}},
		{"long path", "GET", "/api/v1/namespaces/" + strings.Repeat("x", 500000), "", "", []int{404, 431, 414}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, g.s.URL()+tt.path, strings.NewReader(tt.body))
			must(t, err)
			r.Header.Set("Content-Type", tt.media)
			begun := time.Now()
			code, _, body := apitest.Send(t, g.honest, r)
			ok := false
			for _, want := range tt.codes {
				ok = ok || code == want
			}
			if took := time.Since(begun); !ok {
				t.Errorf("%d after %v, want %v: %.200s", code, took, tt.codes, body)
			}
		})
	}
	g.over()
}

// indented is YAML of so many levels.
func indented(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

// laughs is YAML that would be large if its references were resolved.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		fmt.Fprintf(&b, "a%d: &a%[1]d [%s*a%d]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return b.String()
}

// doubled is a JSON patch that doubles the object with every operation.
func doubled() string {
	ops := []string{`{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1000) + `"}}`}
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/metadata","path":"/metadata/annotations/b%d"}`, i))
	}
	return "[" + strings.Join(ops, ",") + "]"
}

// Headers that are too large are refused, and somebody unknown gets no second request on a
// connection of HTTP/2.
func TestHostileHeaders(t *testing.T) {
	g := besiege(t, Config{})
	c := g.shaken("http/1.1")
	_, _ = fmt.Fprintf(c, "GET /version HTTP/1.1\r\nHost: plinth\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 2<<20))
	answer := make([]byte, 12)
	if _, err := io.ReadFull(c, answer); err == nil && string(answer) != "HTTP/1.1 431" {
		t.Errorf("large header: %s", answer)
	}
	h := newHTTP2(t, g.shaken("h2"))
	_, err := h.ask("GET", "/version", true)
	must(t, err)
	goAway := false
	_ = h.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for {
		f, err := h.ReadFrame()
		if err != nil {
			break
		}
		_, is := f.(*http2.GoAwayFrame)
		goAway = goAway || is
	}
	if !goAway {
		t.Error("somebody unknown keeps a connection of HTTP/2")
	}
	g.over()
}
