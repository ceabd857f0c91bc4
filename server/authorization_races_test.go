package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/pki"
)

// Permissions that change while they are used, at two servers of one database where there can be two.

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// roleBinding binds a role of the namespace default to a user.
func roleBinding(name, kind, role, user string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, name, kind, role, user)
}

func roleJSON(name, rules string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"rules":[%s]}`, name, rules)
}

// TestWithdrawnDuringWatch withdraws a permission at one server while a watch runs at the other. The
// watch goes on, as in kube-apiserver, which asks when it begins; nothing new is allowed.
func TestWithdrawnDuringWatch(t *testing.T) {
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		admin := clientOf(t, one)
		roles, bindings := rbacPath+"/namespaces/default/roles", rbacPath+"/namespaces/default/rolebindings"
		admin.do("POST", roles, roleJSON("r", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}`), 201)
		user := clientAs(t, other, "ann")
		configMaps := other.URL() + "/api/v1/namespaces/default/configmaps"
		for round := range 3 {
			binding := fmt.Sprint("b", round)
			admin.do("POST", bindings, roleBinding(binding, "Role", "r", "ann"), 201)
			apitest.Eventually(t, "the other server allows it", func() bool {
				code, _, _ := apitest.Do(t, user, "GET", configMaps, "")
				return code == 200
			})
			events := watching(t, user, configMaps+"?watch=1")
			admin.do("DELETE", bindings+"/"+binding, "", 200)
			if code, _, body := apitest.Do(t, clientAs(t, one, "ann"), "GET", one.URL()+"/api/v1/namespaces/default/configmaps", ""); code != 403 {
				t.Errorf("where it was withdrawn: %d %s", code, body)
			}
			apitest.Eventually(t, "the other server refuses it", func() bool {
				code, _, _ := apitest.Do(t, user, "GET", configMaps, "")
				return code == 403
			})
			name := fmt.Sprint("after", round)
			admin.do("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"`+name+`"}}`, 201)
			for event := range events {
				if strings.Contains(event, `"`+name+`"`) {
					break
				}
			}
			if code, _, _ := apitest.Do(t, user, "GET", configMaps+"?watch=1", ""); code != 403 {
				t.Errorf("another watch: %d", code)
			}
		}
	})
}

// watching returns the lines of a watch, which ends with the test.
func watching(t *testing.T, client *http.Client, url string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	must(t, err)
	resp, err := client.Do(r)
	must(t, err)
	if resp.StatusCode != 200 {
		t.Fatalf("watch: %d", resp.StatusCode)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	return lines
}

// TestEscalationRaces has a user who manages roles and bindings, and may list pods besides, try to
// become more by roles, bindings and what they refer to, all at once and at both servers.
func TestEscalationRaces(t *testing.T) {
	const narrow, wide = `{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}`, `{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		admin := clientOf(t, one)
		roles, bindings := rbacPath+"/namespaces/default/roles", rbacPath+"/namespaces/default/rolebindings"
		admin.do("POST", roles, roleJSON("manager", narrow+`,{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["*"],"resourceNames":[]}`), 201)
		// The verb * would allow to escalate and to bind.
		admin.do("PUT", roles+"/manager", roleJSON("manager", narrow+`,{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","list","create","update","patch","delete"]}`), 200)
		admin.do("POST", bindings, roleBinding("manager", "Role", "manager", "eve"), 201)
		admin.do("POST", roles, roleJSON("wide", wide), 201)
		admin.do("POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"}}`, 201)
		secret := "/api/v1/namespaces/default/secrets/s"
		apitest.Eventually(t, "the other server allows it", func() bool {
			code, _, _ := apitest.Do(t, clientAs(t, other, "eve"), "GET", other.URL()+roles, "")
			return code == 200
		})
		attempts := []struct{ method, path, body string }{
			{"POST", roles, roleJSON("mine", narrow)},
			{"POST", roles, roleJSON("mine", wide)},
			{"PUT", roles + "/mine", roleJSON("mine", wide)},
			{"PUT", roles + "/mine", roleJSON("mine", narrow)},
			{"PATCH", roles + "/mine", `{"rules":[` + narrow + `,` + wide + `]}`},
			{"POST", bindings, roleBinding("mine", "Role", "mine", "eve")},
			{"POST", bindings, roleBinding("mine", "Role", "wide", "eve")},
			{"POST", bindings, roleBinding("mine", "ClusterRole", "cluster-admin", "eve")},
			{"POST", bindings, roleBinding("mine", "Role", "absent", "eve")},
			{"POST", roles, roleJSON("absent", wide)},
			{"PATCH", bindings + "/mine", `{"roleRef":{"name":"wide"}}`},
			{"DELETE", bindings + "/mine", ""},
			{"DELETE", roles + "/mine", ""},
			{"PUT", roles + "/manager", roleJSON("manager", `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`)},
		}
		var wg sync.WaitGroup
		var tried, done, read atomic.Int64
		for w := range 6 {
			s := []*Server{one, other}[w%2]
			eve := clientAs(t, s, "eve")
			wg.Go(func() {
				for i := range 60 {
					a := attempts[(i*(2*w+1)+w)%len(attempts)]
					code := attempt(t, eve, a.method, s.URL()+a.path, a.body)
					tried.Add(1)
					if code < 300 {
						done.Add(1)
					}
					if code := attempt(t, eve, "GET", s.URL()+secret, ""); code == 200 {
						read.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if read.Load() > 0 || done.Load() == 0 {
			t.Errorf("the Secret was read %d times; %d of %d attempts were allowed", read.Load(), done.Load(), tried.Load())
		}
		for _, s := range []*Server{one, other} {
			if code := attempt(t, clientAs(t, s, "eve"), "GET", s.URL()+secret, ""); code != 403 {
				t.Errorf("at the end: %d", code)
			}
		}
	})
}

// attempt makes a request, a patch as a merge, and returns the status.
func attempt(t *testing.T, client *http.Client, method, url, body string) int {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	begun := time.Now()
	resp, err := client.Do(r)
	if errors.Is(err, io.ErrUnexpectedEOF) && time.Since(begun) >= firstFrame {
		r.Body, _ = r.GetBody()
		resp, err = client.Do(r)
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// firstFrame is how long net/http waits for the first frame of a new connection of HTTP/2. On a machine
// that stands still it closes the connection before it has read anything, so that asking again is safe.
const firstFrame = 2 * time.Second

// TestConfigurationUnderLoad replaces the files that say who is believed and who may do what, and the
// certificate that is shown, over and over, also by such as cannot be used, while clients read and
// write. No request fails, and in the end the last files are in force.
func TestConfigurationUnderLoad(t *testing.T) {
	first, second := authority(t), authority(t)
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		files := &configFiles{t: t, dir: t.TempDir()}
		files.write("ca.crt", first.CA())
		files.serve(first)
		files.write("authz.yaml", fmt.Appendf(nil, authorizers, "Node", "node", "RBAC", "rbac"))
		c := Config{DSN: d.Fresh(t), Authentication: authn.NewOptions(), Authorization: &authz.Options{AuthorizationConfigurationFile: files.path("authz.yaml")}}
		c.Authentication.ClientCert.ClientCA = files.path("ca.crt")
		c.Serving.CertFile, c.Serving.KeyFile = files.path("serving.crt"), files.path("serving.key")
		var servers []*Server
		for range d.Servers {
			servers = append(servers, start(t, c))
		}
		roots := x509.NewCertPool()
		for _, p := range []*pki.PKI{first, second, servers[0].pki} {
			roots.AppendCertsFromPEM(p.CA())
		}
		admin := clientTrusting(t, servers[0].pki, "kubernetes-admin", roots, "system:masters")
		letUse(t, admin, servers[0].URL(), "ann")
		for _, s := range servers {
			apitest.Eventually(t, "ann may read", func() bool {
				code, _, _ := apitest.Do(t, clientTrusting(t, first, "ann", roots), "GET", s.URL()+defaultConfigMaps, "")
				return code == 200
			})
		}
		stop, ended := make(chan struct{}), sync.WaitGroup{}
		var requests atomic.Int64
		for w := range 6 {
			s, client := servers[w%len(servers)], clientTrusting(t, first, "ann", roots)
			ended.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if i%5 == 0 {
						client.CloseIdleConnections() // the next request begins with a handshake
					}
					if code := attempt(t, client, "GET", s.URL()+defaultConfigMaps+"?limit=1", ""); code != 200 {
						t.Errorf("get: %d", code)
					}
					if code := attempt(t, client, "POST", s.URL()+defaultConfigMaps, fmt.Sprintf(`{"metadata":{"name":"c-%d-%d"}}`, w, i)); code != 201 {
						t.Errorf("create: %d", code)
					}
					requests.Add(2)
				}
			})
		}
		for i := 0; i < 40 || requests.Load() == 0 && !t.Failed(); i++ {
			files.replace(i, first, second)
			time.Sleep(20 * time.Millisecond)
		}
		close(stop)
		ended.Wait()
		files.write("ca.crt", second.CA())
		files.serve(second)
		for _, s := range servers {
			apitest.Eventually(t, "the last files are in force", func() bool {
				client := clientTrusting(t, second, "ann", roots)
				resp, err := client.Get(s.URL() + defaultConfigMaps)
				must(t, err)
				defer resp.Body.Close()
				old := attempt(t, clientTrusting(t, first, "ann", roots), "GET", s.URL()+defaultConfigMaps, "")
				return resp.StatusCode == 200 && old == 401 && bytes.Equal(resp.TLS.PeerCertificates[0].Raw, files.shown)
			})
		}
	})
}

const (
	defaultConfigMaps = "/api/v1/namespaces/default/configmaps"
	authorizers       = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: %s, name: %s}, {type: %s, name: %s}]\n"
)

func authority(t *testing.T) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", []string{"127.0.0.1"})
	must(t, err)
	return p
}

// clientTrusting is a client with a certificate of an authority.
func clientTrusting(t *testing.T, by *pki.PKI, user string, roots *x509.CertPool, groups ...string) *http.Client {
	t.Helper()
	certPEM, keyPEM, err := by.Client(user, groups, time.Hour)
	must(t, err)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// letUse lets a user read and create ConfigMaps.
func letUse(t *testing.T, admin *http.Client, url, user string) {
	t.Helper()
	for path, body := range map[string]string{
		"/roles":        roleJSON("user", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","create"]}`),
		"/rolebindings": roleBinding("user", "Role", "user", user),
	} {
		if code := attempt(t, admin, "POST", url+rbacPath+"/namespaces/default"+path, body); code != 201 {
			t.Fatalf("%s: %d", path, code)
		}
	}
}

// configFiles are files that are replaced while servers use them.
type configFiles struct {
	t     *testing.T
	dir   string
	shown []byte // serving certificate
}

func (f *configFiles) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces a file as a whole.
func (f *configFiles) write(name string, text []byte) {
	f.t.Helper()
	must(f.t, os.WriteFile(f.path(name)+".new", text, 0o600))
	must(f.t, os.Rename(f.path(name)+".new", f.path(name)))
}

// serve replaces key and certificate one after the other.
func (f *configFiles) serve(p *pki.PKI) {
	f.t.Helper()
	pair, err := p.Serving(nil)
	must(f.t, err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(f.t, err)
	f.shown = pair.Certificate[0]
	f.write("serving.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	f.write("serving.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
}

// replace writes the files of turn i, in which the first authority is always believed.
func (f *configFiles) replace(i int, first, second *pki.PKI) {
	f.t.Helper()
	switch i % 8 {
	case 0:
		f.write("ca.crt", append(bytes.Clone(second.CA()), first.CA()...))
	case 1:
		f.serve(second)
	case 2:
		f.write("authz.yaml", fmt.Appendf(nil, authorizers, "RBAC", "rbac", "Node", "node"))
	case 3:
		f.write("ca.crt", []byte("-----BEGIN CERTIFICATE-----\nnone\n"))
	case 4:
		f.write("authz.yaml", []byte("no: configuration"))
	case 5:
		f.write("ca.crt", first.CA())
	case 6:
		f.serve(first)
	case 7:
		f.write("authz.yaml", fmt.Appendf(nil, authorizers, "Node", "node", "RBAC", "rbac"))
	}
}
