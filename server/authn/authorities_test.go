package authn_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/pki"
)

// load asks who it is again and again, until stop is called, and keeps the answers that it does
// not expect.
type load struct {
	wrong  sync.Map // answer: true
	asked  atomic.Int64
	allows atomic.Pointer[[]string]
	end    chan struct{}
	done   sync.WaitGroup
}

// begin starts clients that keep their connections.
func begin(t *testing.T, s *server.Server, c credentials, answers ...string) *load {
	l := &load{end: make(chan struct{})}
	l.allows.Store(&answers)
	for range 4 {
		client := c.client(s)
		l.done.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-l.end:
					return
				case <-time.After(20 * time.Millisecond): // the processors are for the server that follows the file
				}
				allowed := *l.allows.Load()
				got, _ := c.ask(t, s, client)
				l.asked.Add(1)
				if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+got+" ") && len(*l.allows.Load()) == len(allowed) {
					l.wrong.Store(got, true)
				}
			}
		})
	}
	return l
}

// expect is for the time of a change: both answers are right.
func (l *load) expect(answers ...string) { l.allows.Store(&answers) }

// more waits until so many requests more have been answered.
func (l *load) more(t *testing.T, requests int64) {
	t.Helper()
	begun := l.asked.Load()
	apitest.Eventually(t, "more requests", func() bool { return l.asked.Load() >= begun+requests })
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	close(l.end)
	l.done.Wait()
	l.wrong.Range(func(answer, _ any) bool {
		t.Errorf("the answer was %v", answer)
		return true
	})
	if l.asked.Load() < 20 {
		t.Errorf("only %d requests", l.asked.Load())
	}
}

// An authority of clients is replaced in three steps: the new one beside the old, then alone. No
// request of an authority that is trusted fails, and none of another passes, on connections that
// are open too. A file that is broken changes nothing.
func TestClientCAReplaced(t *testing.T) {
	old, next := authority(t), authority(t)
	log := &apitest.Lines{}
	path := file(t, string(old.CA()))
	c := with(func(o *authn.Options) { o.ClientCert.ClientCA = path })
	c.Log = log.Log()
	s := start(t, c)
	ann := credentials{cert: certificate(t, old, "ann", time.Hour)}
	bob := credentials{cert: certificate(t, next, "bob", time.Hour)}
	anns, bobs := begin(t, s, ann, "ann"), begin(t, s, bob, unauthorized)

	replace(t, path, "broken")
	apitest.Eventually(t, "the log tells of the broken file", func() bool { return strings.Contains(log.All(), "cannot be used") })
	bobs.expect(unauthorized, "bob")
	replace(t, path, string(old.CA())+string(next.CA()))
	apitest.Eventually(t, "bob is believed", func() bool { return bob.who(t, s) == "bob" })
	bobs.expect("bob", "bob", "bob")
	waitUntilPublished(t, s, "client-ca-file", string(next.CA()))
	anns.expect("ann", unauthorized)
	replace(t, path, string(next.CA()))
	apitest.Eventually(t, "ann is refused", func() bool { return ann.who(t, s) == unauthorized })
	anns.expect(unauthorized, unauthorized, unauthorized)
	before := anns.asked.Load()
	apitest.Eventually(t, "ann is refused on her connections", func() bool { return anns.asked.Load() > before+20 })
	anns.stop(t)
	bobs.stop(t)
	if who := adminOf(t, s); who != pki.AdminName {
		t.Errorf("the admin is %s", who)
	}
}

// waitUntilPublished waits until extension servers can read a certificate.
func waitUntilPublished(t *testing.T, s *server.Server, key, want string) {
	t.Helper()
	apitest.Eventually(t, key+" is published", func() bool {
		m, err := apitest.Typed(t, s).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		return err == nil && strings.Contains(m.Data[key], strings.TrimSpace(want))
	})
}

func adminOf(t *testing.T, s *server.Server) string {
	t.Helper()
	code, _, body := apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
	if code != http.StatusCreated || !strings.Contains(body, pki.AdminName) {
		return body
	}
	return pki.AdminName
}

// A front proxy names other users on one connection, one after the other, until its authority is
// taken away.
func TestProxyCAReplaced(t *testing.T) {
	old, next := authority(t), authority(t)
	path := file(t, string(old.CA()))
	s := start(t, with(func(o *authn.Options) {
		r := o.RequestHeader
		r.ClientCAFile, r.UsernameHeaders, r.GroupHeaders = path, []string{"X-Remote-User", "X-Acme-User"}, []string{"X-Remote-Group"}
	}))
	gate := certificate(t, old, "gate", time.Hour)
	client := credentials{cert: gate}.client(s)
	defer client.CloseIdleConnections()
	for header, name := range map[string]string{"X-Remote-User": "pia", "X-Acme-User": "max"} {
		c := credentials{cert: gate, header: map[string]string{header: name}}
		if got, _ := c.ask(t, s, client); got != name {
			t.Errorf("%s: %s", header, got)
		}
	}
	if got, _ := (credentials{cert: gate}).ask(t, s, client); got != unauthorized {
		t.Errorf("no name: %s", got)
	}
	waitUntilPublished(t, s, "requestheader-client-ca-file", string(old.CA()))
	waitUntilPublished(t, s, "requestheader-username-headers", "X-Acme-User")
	replace(t, path, string(next.CA()))
	pia := credentials{cert: gate, header: remoteUser("pia")}
	apitest.Eventually(t, "the proxy is refused on its connection", func() bool {
		got, _ := pia.ask(t, s, client)
		return got == unauthorized
	})
	after := credentials{cert: certificate(t, next, "any name", time.Hour), header: remoteUser("pia")}
	if got := after.who(t, s); got != "pia" {
		t.Errorf("the new proxy: %s", got)
	}
}

// A certificate that ends during its connection is refused from then on.
func TestCertificateEndsOnConnection(t *testing.T) {
	p := authority(t)
	s := start(t, with(func(o *authn.Options) { o.ClientCert.ClientCA = file(t, string(p.CA())) }))
	var ann credentials
	var client *http.Client
	opened, got := 0, ""
	for life := 2 * time.Second; got != "ann" && life < time.Minute; life *= 2 { // a busy machine may outlive it
		ann, opened = credentials{cert: certificate(t, p, "ann", life)}, 0
		client = ann.client(s)
		defer client.CloseIdleConnections()
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			opened++
			return ann.cert, nil
		}
		got, _ = ann.ask(t, s, client)
	}
	if got != "ann" {
		t.Fatal(got)
	}
	apitest.Eventually(t, "it is refused", func() bool {
		got, _ := ann.ask(t, s, client)
		return got == unauthorized
	})
	if opened != 1 {
		t.Errorf("%d connections", opened)
	}
}
