package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"

	clientrest "k8s.io/client-go/rest"
)

// Local is the Door of plinth ui: one user of this machine, whose kubeconfig is used. Its address, which is printed for
// him alone, has a secret that is good once and becomes a cookie. Cookies go to every port of a host, which other users
// may listen on, so that the path has something that nobody can guess too: a cookie goes nowhere else.
type Local struct {
	config *clientrest.Config
	base   string
	cookie string // its value
	hosts  []string

	mu  sync.Mutex
	key string // in the address; empty once it was used
}

const localCookie = "plinth-ui"

// NewLocal returns a door to what a kubeconfig points at, on an address of the loopback interface.
func NewLocal(config *clientrest.Config, address string) *Local {
	hosts := []string{address}
	if _, port, err := net.SplitHostPort(address); err == nil {
		hosts = append(hosts, net.JoinHostPort("localhost", port))
	}
	return &Local{config: config, base: "/" + secret(6) + "/", cookie: secret(32), key: secret(32), hosts: hosts}
}

// secret returns random bytes as text.
func secret(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Base is the path of the page.
func (l *Local) Base() string { return l.base }

// URL is the address that lets its first visitor in.
func (l *Local) URL() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "http://" + l.hosts[0] + l.base + "?key=" + l.key
}

func (l *Local) guard(r *http.Request) error {
	if !slices.Contains(l.hosts, r.Host) {
		return problem(http.StatusMisdirectedRequest, "This page is at http://%s only.", l.hosts[0])
	}
	return nil
}

func (l *Local) enter(r *http.Request) (string, *clientrest.Config, error) {
	for _, c := range r.CookiesNamed(localCookie) {
		if same(c.Value, l.cookie) {
			return "", l.config, nil
		}
	}
	return "", nil, errSignIn
}

// routes has the address with the key set the cookie, before anything else is looked at.
func (l *Local) routes(s *Server) {
	s.mux.HandleFunc("GET /signin", func(w http.ResponseWriter, r *http.Request) {
		if !l.take(r.URL.Query().Get("key")) {
			s.fail(w, r, nil, problem(http.StatusUnauthorized, "Open the address that plinth ui has printed. It lets one browser in, once: for another one run plinth ui again."))
			return
		}
		http.SetCookie(w, &http.Cookie{Name: localCookie, Value: l.cookie, Path: l.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		showEntry(w, r, l.base)
	})
}

// take uses up the key.
func (l *Local) take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok := l.key != "" && same(key, l.key)
	if ok {
		l.key = ""
	}
	return ok
}

// welcome goes on to where the key is taken.
func (l *Local) welcome(w http.ResponseWriter, r *http.Request, err error) bool {
	key := r.URL.Query().Get("key")
	if r.Method != http.MethodGet || key == "" || !errors.Is(err, errSignIn) {
		return false
	}
	http.Redirect(w, r, l.base+"signin?key="+url.QueryEscape(key), http.StatusFound)
	return true
}

func (l *Local) server(*http.Request) string { return l.config.Host }

func (l *Local) leave() string { return "" }

// same compares secrets in a time that tells nothing of them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
