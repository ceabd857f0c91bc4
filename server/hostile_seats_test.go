package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
)

const reviewsPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// attacker is who attacks, and whose like is the victim: both have their requests in one priority level.
type attacker struct {
	name   string
	config func(g *siege, name string) *rest.Config
}

// attackers are a user, a service account and somebody unknown.
var attackers = []attacker{
	{"user", userConfig},
	{"service account", func(g *siege, name string) *rest.Config {
		apitest.AddAccount(g.T, g.s, name)
		config := rest.AnonymousClientConfig(g.s.RESTConfig())
		config.BearerToken = apitest.RequestToken(g.T, g.s, name, authenticationv1.TokenRequestSpec{})
		return config
	}},
	{"anonymous", func(g *siege, _ string) *rest.Config { return rest.AnonymousClientConfig(g.s.RESTConfig()) }},
}

func userConfig(g *siege, name string) *rest.Config { return configAs(g.T, g.s, name) }

// dialAs opens a connection that buffers little.
func (g *siege) dialAs(config *rest.Config, protocol string) net.Conn {
	g.Helper()
	c, err := rest.TLSConfigFor(config)
	must(g.T, err)
	c.NextProtos, c.ServerName = []string{protocol}, "localhost"
	raw, err := net.Dial("tcp", strings.TrimPrefix(g.s.URL(), "https://"))
	must(g.T, err)
	must(g.T, raw.(*net.TCPConn).SetReadBuffer(16<<10))
	g.conns = append(g.conns, raw)
	g.Cleanup(func() { raw.Close() })
	conn := tls.Client(raw, c)
	must(g.T, conn.HandshakeContext(g.Context()))
	return conn
}

// slowRequest is what an attacker asks, and a part of the body.
type slowRequest struct {
	method, path string
	length       int    // of the body
	sent         string // of it
}

var (
	slowBody   = slowRequest{"POST", reviewsPath, 3000, "{"}
	largeBody  = slowRequest{"POST", reviewsPath, 3 << 20, "{"}
	unreadList = slowRequest{"GET", "/api/v1/namespaces/default/configmaps", 0, ""}
	unreadInit = slowRequest{"GET", "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 0, ""}
)

// http1 sends the request on n connections of HTTP/1.
func (r slowRequest) http1(g *siege, config *rest.Config, n int) {
	for range n {
		c := g.dialAs(config, "http/1.1")
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: plinth\r\n", r.method, r.path)
		if config.BearerToken != "" {
			head += "Authorization: Bearer " + config.BearerToken + "\r\n"
		}
		if r.length > 0 {
			head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", r.length)
		}
		_, err := io.WriteString(c, head+"\r\n"+r.sent)
		must(g.T, err)
	}
}

// http2 sends the request n times, on four connections of HTTP/2.
func (r slowRequest) http2(g *siege, config *rest.Config, n int) {
	for range 4 {
		c := newHTTP2(g.T, g.dialAs(config, "h2"))
		go io.Copy(io.Discard, readerOf(c)) // frames are read, and no window is ever opened
		for i := range n / 4 {
			var block bytes.Buffer
			e := hpack.NewEncoder(&block)
			fields := [][2]string{{":method", r.method}, {":scheme", "https"}, {":authority", "plinth"}, {":path", r.path}}
			if config.BearerToken != "" {
				fields = append(fields, [2]string{"authorization", "Bearer " + config.BearerToken})
			}
			if r.length > 0 {
				fields = append(fields, [2]string{"content-type", "application/json"}, [2]string{"content-length", fmt.Sprint(r.length)})
			}
			for _, f := range fields {
				must(g.T, e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
			}
			stream := uint32(2*i + 1)
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: r.length == 0})
			if err == nil && r.sent != "" {
				err = c.WriteData(stream, false, []byte(r.sent))
			}
			if err != nil {
				break // the server has ended the connection, as it may
			}
		}
	}
}

func readerOf(c *http2Conn) io.Reader { return c.conn }

// A request that waits for its client holds no seat: whoever has others that are slow, and of whichever kind,
// the requests of another user of the same priority level are answered at once.
func TestHostileSeats(t *testing.T) {
	const slow = 420                                          // more than there are seats in any level
	g := besiege(t, Config{RequestTimeout: 10 * time.Minute}) // longer than the test waits for seats
	g.fillConfigMaps(20)
	for resource, object := range map[string]string{
		"clusterroles": `{"metadata":{"name":"reads"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]}`,
		"clusterrolebindings": `{"metadata":{"name":"reads"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reads"},"subjects":[` +
			`{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"},{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:unauthenticated"}]}`,
	} {
		if code, _, body := apitest.Do(t, g.honest, "POST", g.s.URL()+"/apis/rbac.authorization.k8s.io/v1/"+resource, object); code != http.StatusCreated {
			t.Fatalf("%d %s", code, body)
		}
	}
	loads := []struct {
		name  string
		begin func(g *siege, config *rest.Config)
	}{
		{"bodies, HTTP/1", func(g *siege, c *rest.Config) { slowBody.http1(g, c, 120) }},
		{"bodies, HTTP/2", func(g *siege, c *rest.Config) { slowBody.http2(g, c, slow) }},
		{"large bodies, HTTP/2", func(g *siege, c *rest.Config) { largeBody.http2(g, c, slow) }},
		{"lists, HTTP/1", func(g *siege, c *rest.Config) { unreadList.http1(g, c, 60) }},
		{"lists, HTTP/2", func(g *siege, c *rest.Config) { unreadList.http2(g, c, slow) }},
		{"watches, HTTP/2", func(g *siege, c *rest.Config) { unreadInit.http2(g, c, slow/2) }},
	}
	for i, who := range attackers {
		for j, load := range loads {
			if i > 0 && scale() == 1 && load.name != "bodies, HTTP/2" && load.name != "lists, HTTP/2" {
				continue // takes longer, and is the same for all kinds of users
			}
			t.Run(who.name+", "+load.name, func(t *testing.T) {
				g := &siege{T: t, s: g.s, honest: g.honest}
				victim := g.victim(who, fmt.Sprintf("victim-%d-%d", i, j))
				victim("before")
				g.begin()
				load.begin(g, who.config(g, fmt.Sprintf("mallory-%d-%d", i, j)))
				g.settles()
				apitest.Eventually(t, "no request that waits for its client has a seat", g.hasFreeSeats)
				victim("meanwhile")
				g.bounded(8*slow, 256<<20)
				g.over()
			})
		}
	}
}

// settles waits until all requests of the attacker wait for something, or are over: those with a seat, those that wait for one and
// those that wait for their clients stay as they are for a while.
func (g *siege) settles() {
	g.Helper()
	last, same := "", 0
	apitest.Eventually(g.T, "the attack has come", func() bool {
		now := g.figures("apiserver_flowcontrol_current_", "plinth_slow_requests")
		if same++; now != last {
			last, same = now, 0
		}
		return same == 10
	})
	g.Logf("it has come:\n%s", last)
}

// hasFreeSeats tells whether nobody has a seat but those who are exempt.
func (g *siege) hasFreeSeats() bool {
	g.Helper()
	return g.figures("apiserver_flowcontrol_current_executing_seats{") == ""
}

// figures are the metrics with names that begin so and are not 0, without those of requests that are exempt.
func (g *siege) figures(names ...string) string {
	g.Helper()
	_, metrics := g.get("/metrics")
	var found strings.Builder
	for line := range strings.Lines(metrics) {
		named := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(line, name) })
		if named && !strings.Contains(line, `"exempt"`) && !strings.HasSuffix(line, " 0\n") {
			found.WriteString(line)
		}
	}
	return found.String()
}

// victim returns a function that sends requests as another user like the attacker, and checks that each is
// answered. If everybody waits for seats that are held until a request's time is over, none is for half a
// minute.
func (g *siege) victim(who attacker, name string) func(when string) {
	config := who.config(g, name)
	if who.name == "anonymous" {
		config = userConfig(g, name) // of the same level
	}
	client, err := rest.HTTPClientFor(config)
	must(g.T, err)
	return func(when string) {
		g.Helper()
		const requests = 100
		took := make([]time.Duration, 0, requests)
		for i := range requests {
			method, path, body, want := "GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", "", 404
			if i%2 == 0 {
				method, path, body, want = "POST", reviewsPath, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`, 201
			}
			begun := time.Now()
			code, _, text := apitest.Do(g.T, client, method, g.s.URL()+path, body)
			took = append(took, time.Since(begun))
			if code != want || took[i] > 10*time.Second {
				g.Fatalf("%s: %d after %v: %s", when, code, took[i], text)
			}
		}
		slices.Sort(took)
		g.Logf("%s: the victim waits %v, p99 %v, at most %v", when, took[requests/2], took[requests*99/100-1], took[requests-1])
	}
}

// fillConfigMaps makes a list of so many half megabytes.
func (g *siege) fillConfigMaps(n int) {
	g.Helper()
	large := `{"metadata":{"name":"NAME"},"data":{"a":"` + strings.Repeat("x", 500<<10) + `"}}`
	for i := range n {
		code, _, body := apitest.Do(g.T, g.honest, "POST", g.s.URL()+"/api/v1/namespaces/default/configmaps", strings.Replace(large, "NAME", fmt.Sprint("large", i), 1))
		if code != http.StatusCreated {
			g.Fatalf("%d %s", code, body)
		}
	}
}
