package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/servertest"
)

// ask sends a request to the page of a Local door.
func ask(page http.Handler, host, target string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = host
	r.Header.Set("Accept", "text/html")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

// TestLocalDoor: the address lets one browser in, once; names of other hosts, cookies of other pages and guesses do not.
func TestLocalDoor(t *testing.T) {
	t.Parallel()
	const host = "127.0.0.1:8080"
	config := &clientrest.Config{Host: "https://127.0.0.1:1"}
	door := NewLocal(config, host)
	page := New(Options{Base: door.Base(), Door: door})
	base := door.Base()
	_, key, _ := strings.Cut(door.URL(), "?key=")

	for _, other := range []string{"evil.example.com", "evil.example.com:8080", "127.0.0.1", "127.0.0.1:9090", ""} {
		if w := ask(page, other, base+"signin?key="+key); w.Code != http.StatusMisdirectedRequest || len(w.Result().Cookies()) > 0 {
			t.Errorf("Host %q gets %d", other, w.Code)
		}
	}
	if w := ask(page, host, base+"signin?key=0"+key[1:]+"0"); w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) > 0 {
		t.Errorf("a guess gets %d", w.Code)
	}
	if w := ask(page, host, "/"); w.Code != http.StatusNotFound {
		t.Errorf("/ gets %d", w.Code)
	}
	w := ask(page, "localhost:8080", base+"signin?key="+key)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != base {
		t.Fatalf("the key gets %d and the cookies %v", w.Code, cookies)
	}
	if w := ask(page, host, base+"signin?key="+key); w.Code != http.StatusUnauthorized {
		t.Errorf("the key works a second time: %d", w.Code)
	}
	if w := ask(page, host, base+"signin?key="); w.Code != http.StatusUnauthorized {
		t.Errorf("no key works when it was used: %d", w.Code)
	}

	other := NewLocal(config, host)
	for _, c := range []*http.Cookie{
		{Name: localCookie, Value: other.cookie},
		{Name: localCookie, Value: ""},
		{Name: localCookie, Value: cookies[0].Value[1:]},
	} {
		if w := ask(page, host, base+"kinds/pods", c); w.Code != http.StatusUnauthorized {
			t.Errorf("the cookie %q gets %d", c.Value, w.Code)
		}
	}
	// Behind the door is a server that does not answer, which the page says.
	if w := ask(page, host, base, cookies[0]); w.Code != http.StatusOK && w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "127.0.0.1:1") {
		t.Errorf("the visitor gets %d %s", w.Code, w.Body)
	}
	// A browser keeps one cookie of a name for a path, but may send several.
	if w := ask(page, host, base, &http.Cookie{Name: localCookie, Value: "x"}, cookies[0]); w.Code == http.StatusUnauthorized {
		t.Error("a cookie beside the right one locks the visitor out")
	}
}

// TestStrangers: nobody without the cookie sees a page, whatever else he sends.
func TestStrangers(t *testing.T) {
	srv := servertest.Start(t)
	base, address := local(t, srv.Config)
	stranger := tabAt(t, base, "")
	stranger.open(base)
	stranger.sees("Sign in")
	friend := tabAt(t, base, address)
	friend.sees("What changed of late")
	stranger.open(address) // the key was used
	stranger.sees("It lets one browser in, once")
	if !strings.HasPrefix(eval[string](friend, "location.href"), base) || strings.Contains(eval[string](friend, "location.href"), "key") {
		t.Errorf("the address keeps the key: %s", eval[string](friend, "location.href"))
	}
	if cookies := eval[string](friend, "document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookie %q", cookies)
	}
}
