package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/pki"
)

// identity is a way to present oneself to the server.
type identity struct {
	name string // in testdata/identities/rows.txt
	user string // as the server's errors name the caller; empty: every answer is 401
	// Credentials.
	cert   *x509.Certificate
	header http.Header
	conn   context.Context // of the identity's one connection
}

// parties is a server with identities, and with what their permissions are about.
type parties struct {
	server *Server
	list   []*identity
}

// answer is what a server answers; body only of errors.
type answer struct {
	code   int
	body   string
	header http.Header
}

// openParties starts a server with the objects of testdata/identities/objects.txt.
func openParties(t *testing.T, c Config) *parties {
	t.Helper()
	if c.RuntimeConfig == nil {
		c.RuntimeConfig = map[string]string{"api/all": "true"}
	}
	c.DisableAdmissionPlugins = append(c.DisableAdmissionPlugins, "ServiceAccount") // no controller makes the accounts of pods
	p := &parties{server: start(t, c)}
	p.fill(t)
	p.addCertificates(t)
	p.addTokens(t)
	p.addImpersonators(t)
	return p
}

// fill creates the objects of a file: lines of a path and of what to post there.
func (p *parties) fill(t *testing.T) {
	t.Helper()
	client := apitest.Admin(t, p.server)
	text, err := os.ReadFile("testdata/identities/objects.txt")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		path, body, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if code, _, answer := apitest.Do(t, client, "POST", p.server.URL()+path, body); code != 201 {
			t.Fatalf("%s: %d %s", line, code, answer)
		}
	}
	apitest.Eventually(t, "the custom resource is served", func() bool {
		return p.server.kinds.Lookup("example.com", "v1", "widgets") != nil
	})
}

func (p *parties) add(name, user string, certPEM []byte, header http.Header) *identity {
	i := &identity{name: name, user: user, header: header, conn: authn.WithConn(context.Background())}
	if certPEM != nil {
		list, err := cert.ParseCertsPEM(certPEM)
		if err != nil {
			panic(err)
		}
		i.cert = list[0]
	}
	p.list = append(p.list, i)
	return i
}

func (p *parties) addCertificates(t *testing.T) {
	t.Helper()
	others, err := pki.Open("", nil)
	must(t, err)
	for _, row := range []struct {
		name, user, group string
		authority         *pki.PKI
		life              time.Duration
	}{
		{"admin", "boss", "system:masters", p.server.pki, time.Hour},
		{"nobody", "nobody", "people", p.server.pki, time.Hour},
		{"reader", "reader", "people", p.server.pki, time.Hour},
		{"node", "system:node:node1", "system:nodes", p.server.pki, time.Hour},
		{"wrong authority", "", "system:masters", others, time.Hour},
		{"expired certificate", "", "system:masters", p.server.pki, -time.Minute},
	} {
		user := row.user
		if user == "" {
			user = "boss"
		}
		made, _, err := row.authority.Client(user, []string{row.group}, row.life)
		must(t, err)
		p.add(row.name, row.user, made, nil)
	}
	p.add("anonymous", "system:anonymous", nil, nil)
	p.add("basic", "system:anonymous", nil, http.Header{"Authorization": {"Basic Ym9zczpib3Nz"}}) // no longer a credential
}

// addTokens adds accounts. Those whose tokens are no good may do everything otherwise.
func (p *parties) addTokens(t *testing.T) {
	t.Helper()
	accounts := apitest.Typed(t, p.server).CoreV1().ServiceAccounts("team")
	request := func(account string, spec authenticationv1.TokenRequestSpec) string {
		made, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
		must(t, err)
		return made.Status.Token
	}
	bound := authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: "bound"}}
	used, revoked := request("strong", bound), request("strong", bound) // a good token is cached
	p.add("account", "system:serviceaccount:team:app", nil, bearing(request("app", authenticationv1.TokenRequestSpec{})))
	p.add("wrong audience", "", nil, bearing(request("strong", authenticationv1.TokenRequestSpec{Audiences: []string{"elsewhere"}})))
	p.add("garbage", "", nil, bearing("a.b.c"))
	p.add("revoked token", "", nil, bearing(revoked))
	good := &identity{header: bearing(used), conn: context.Background()}
	if a := p.ask(t, good, "GET", "/api/v1/namespaces/team", nil); a.code != 200 {
		t.Fatalf("a token that is not revoked yet: %d %s", a.code, a.body)
	}
	must(t, apitest.Typed(t, p.server).CoreV1().Secrets("team").Delete(t.Context(), "bound", metav1.DeleteOptions{}))
}

func (p *parties) addImpersonators(t *testing.T) {
	t.Helper()
	made, _, err := p.server.pki.Client("deputy", nil, time.Hour)
	must(t, err)
	p.add("deputy", "deputy", made, nil)
	p.add("deputy as reader", "reader", made, http.Header{"Impersonate-User": {"reader"}})
	p.add("deputy as boss", "deputy", made, http.Header{"Impersonate-User": {"boss"}})
	p.add("deputy as reader in system:masters", "deputy", made, http.Header{"Impersonate-User": {"reader"}, "Impersonate-Group": {"system:masters"}})
}

func bearing(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// ask goes all the way that a request goes from its listener on, without the listener. It ends
// the request when its status is known.
func (p *parties) ask(t *testing.T, i *identity, method, target string, header http.Header) answer {
	t.Helper()
	ctx, cancel := context.WithCancel(i.conn)
	defer cancel()
	body := header.Get("Body")
	r, err := http.NewRequestWithContext(ctx, method, p.server.URL()+target, strings.NewReader(body))
	must(t, err)
	for _, h := range []http.Header{header, i.header} {
		for name, values := range h {
			r.Header[name] = values
		}
	}
	r.Header.Del("Body")
	r.TLS = &tls.ConnectionState{}
	if i.cert != nil {
		r.TLS.PeerCertificates = []*x509.Certificate{i.cert}
	}
	w, done := newPipeWriter(cancel), make(chan struct{})
	go func() { defer close(done); w.run(p.server.guard, incoming(r)) }()
	<-w.written
	a := answer{code: w.code, header: w.sent}
	if a.code >= 400 {
		text, _ := io.ReadAll(io.LimitReader(w.reader, 4096))
		a.body = string(text)
	}
	w.reader.Close()
	cancel()
	<-done
	return a
}

// refused tells whether an authorizer has refused a caller, and with which words. Other
// refusals (403) are admission's.
func (a answer) refused(user string) (message string, ok bool) {
	var status metav1.Status
	if a.code != http.StatusForbidden || json.Unmarshal([]byte(a.body), &status) != nil {
		return "", false
	}
	return status.Message, strings.Contains(status.Message, `User "`+user+`" cannot `)
}
