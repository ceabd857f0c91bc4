package guard

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/response"
)

// named is a token for which the user is called as the token.
func named(_ context.Context, token string) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: token, Groups: []string{user.AllAuthenticated}}}, true, nil
}

// serveBodies serves a route that answers with the length of the body.
func serveBodies(t *testing.T, l Limits) (*Guard, *httptest.Server) {
	g := New(kind.NewRegistry(nil), Options{
		Authenticator: authn.NewAuthenticator(x509.NewCertPool, authenticator.TokenFunc(named)),
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
		Limits: l, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler),
	})
	g.Route("/length", func(x *Call) error {
		body, err := response.ReadBody(x.Request(), l.Body)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(x.Response(), len(body))
		return err
	})
	s := httptest.NewUnstartedServer(g)
	s.Config.ConnContext, s.Config.ConnState = g.ConnContext, g.ConnState
	s.Start()
	t.Cleanup(s.Close)
	return g, s
}

// slowPost sends the beginning of a body of n bytes.
func slowPost(t *testing.T, s *httptest.Server, who string, n int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /length HTTP/1.1\r\nHost: plinth\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\nx", who, n)
	return c
}

// answerOn reads an answer.
func answerOn(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func post(t *testing.T, s *httptest.Server, who string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/length", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	answer, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Handlers find the bodies that clients have sent, and their errors, whether their length is known or not.
func TestBodies(t *testing.T) {
	g, s := serveBodies(t, Limits{Timeout: time.Minute, Reads: 10, Writes: 10, Body: 1 << 20})
	for _, n := range []int{0, 1, firstBytes - 1, firstBytes, firstBytes + 1, 3 * firstBytes, 1 << 20, 1<<20 + 1, 1<<20 + 2, 2 << 20} {
		for name, body := range map[string]io.Reader{
			"length": bytes.NewReader(make([]byte, n)), "chunks": struct{ io.Reader }{bytes.NewReader(make([]byte, n))},
		} {
			code, text := post(t, s, "ann", body)
			if n <= 1<<20 && (code != 200 || text != fmt.Sprint(n)) || n > 1<<20 && code != http.StatusRequestEntityTooLarge {
				t.Errorf("%d bytes, %s: %d %s", n, name, code, text)
			}
		}
	}
	c := slowPost(t, s, "ann", 10)
	_ = c.(*net.TCPConn).CloseWrite()
	if a := answerOn(t, c); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that breaks off: %d", a.StatusCode)
	}
	if calls, held, _ := g.bodies.figures(); calls != 0 || held != 0 {
		t.Errorf("%d bodies and %d bytes are left", calls, held)
	}
}

// A body that does not come holds no place among the requests that run, and is a bounded burden: others of the
// same user wait until it has paused for too long, and those of another user don't.
func TestBodiesSlow(t *testing.T) {
	g, s := serveBodies(t, Limits{Timeout: 2 * time.Minute, Reads: 1, Writes: 1, Body: 1 << 20, SlowCalls: 2, SlowBytes: 4 << 20})
	first, second := slowPost(t, s, "ann", 1000), net.Conn(nil)
	await(t, "a body is awaited", func() bool { calls, _, _ := g.bodies.figures(); return calls == 1 })
	second = slowPost(t, s, "ann", 1000)
	await(t, "two bodies are awaited", func() bool { calls, _, _ := g.bodies.figures(); return calls == 2 })
	if code, text := post(t, s, "bob", strings.NewReader("four")); code != 200 || text != "4" {
		t.Errorf("another user: %d %s", code, text)
	}
	if code, text := post(t, s, "ann", strings.NewReader("four")); code != 200 || text != "4" {
		t.Errorf("the same user: %d %s", code, text)
	}
	if a := answerOn(t, first); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "1" {
		t.Errorf("the body that has paused for longest: %d %v", a.StatusCode, a.Header)
	}
	fmt.Fprint(second, strings.Repeat("x", 999))
	if a := answerOn(t, second); a.StatusCode != 200 {
		t.Errorf("a body that comes late: %d", a.StatusCode)
	}
}

// A body that takes all of the request's time ends with it.
func TestBodiesLate(t *testing.T) {
	g, s := serveBodies(t, Limits{Timeout: 100 * time.Millisecond, Reads: 1, Writes: 1, Body: 1 << 20})
	go g.CutStalled(t.Context(), time.Minute)
	if a := answerOn(t, slowPost(t, s, "ann", 1000)); a.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%d, want 504", a.StatusCode)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// A body is read once, and a part of one is not whole.
func TestBufferedBody(t *testing.T) {
	b := &bufferedBody{data: []byte("abc"), rest: strings.NewReader("def"), Closer: http.NoBody}
	if _, whole := b.Whole(); whole {
		t.Error("a part of a body is whole")
	}
	if text, err := io.ReadAll(b); string(text) != "abcdef" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	b = &bufferedBody{data: []byte("abc"), Closer: http.NoBody}
	text, whole := b.Whole()
	again, err := io.ReadAll(b)
	if string(text) != "abc" || !whole || len(again) != 0 || err != nil {
		t.Errorf("%q, then %q, %v", text, again, err)
	}
}
