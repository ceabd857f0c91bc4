package servingcert_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/servingcert"
)

// issued are the files of a certificate, and the authority that has signed it.
type issued struct {
	cert, key string
	pool      *x509.CertPool
}

// issue makes a certificate for names, in files that replace those of before.
func issue(t testing.TB, dir string, names ...string) issued {
	t.Helper()
	p, err := pki.Open("", names)
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.Serving(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	i := issued{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), p.ClientCAs()}
	replace(t, i.key, string(key))
	replace(t, i.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})))
	return i
}

func replace(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, o servingcert.Options, log *apitest.Lines) *server.Server {
	t.Helper()
	c := server.Config{Serving: o, Linger: 10 * time.Millisecond, Controllers: []string{}}
	if log != nil {
		c.Log = log.Log()
	}
	s := server.New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial connects as a client that trusts pool and asks for name, or for none.
func dial(s *server.Server, pool *x509.CertPool, name string, change ...func(*tls.Config)) (*tls.ConnectionState, error) {
	c := &tls.Config{RootCAs: pool, ServerName: name}
	if name == "" {
		c.ServerName = "127.0.0.1" // is not sent: it is an address
	}
	for _, f := range change {
		f(c)
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	return &state, nil
}

func ownPool(s *server.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.RESTConfig().CAData)
	return pool
}

// The certificate is chosen by the name that the client asks for: explicit names before names in
// certificates, whole names before wildcards. plinth's own is shown where no other fits.
func TestCertificateByName(t *testing.T) {
	given := issue(t, t.TempDir(), "api.example.com")
	wild := issue(t, t.TempDir(), "*.example.com", "both.example.org")
	named := issue(t, t.TempDir(), "in-the-certificate.example.org", "other.example.org")
	s := start(t, servingcert.Options{CertFile: given.cert, KeyFile: given.key, SNI: []cliflag.NamedCertKey{
		{CertFile: wild.cert, KeyFile: wild.key},
		{CertFile: named.cert, KeyFile: named.key, Names: []string{"other.example.org", "*.pods.example.com"}},
	}}, nil)
	own := ownPool(s)
	for _, tt := range []struct {
		name string
		by   *x509.CertPool
		bad  bool // the name is not in the certificate
	}{
		{"api.example.com", wild.pool, false}, // as upstream, an SNI certificate counts for more
		{"a.example.com", wild.pool, false},
		{"A.Example.COM", wild.pool, false},
		{"both.example.org", wild.pool, false},
		{"other.example.org", named.pool, false},
		{"x.pods.example.com", named.pool, true},
		{"in-the-certificate.example.org", given.pool, true}, // there are explicit names
		{"strange.example.net", given.pool, true},
		{"kubernetes.default.svc", own, false},
		{"localhost", own, false},
		{"", own, false}, // 127.0.0.1
	} {
		// A certificate without the name is told by the authority that has signed it.
		_, err := dial(s, tt.by, tt.name, func(c *tls.Config) {
			if !tt.bad {
				return
			}
			c.InsecureSkipVerify = true
			c.VerifyConnection = func(state tls.ConnectionState) error {
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: tt.by})
				return err
			}
		})
		if err != nil {
			t.Errorf("%q: %v", tt.name, err)
		}
	}
	// The kubeconfig of the server works.
	if code, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/api", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if _, _, text := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", ""); !strings.Contains(text, given.cert) {
		t.Error("/metrics does not have the end of the certificate")
	}
}

// An address in a certificate is shown to clients that connect to it.
func TestCertificateByAddress(t *testing.T) {
	given := issue(t, t.TempDir(), "127.0.0.1", "api.example.com")
	s := start(t, servingcert.Options{CertFile: given.cert, KeyFile: given.key}, nil)
	if _, err := dial(s, given.pool, ""); err != nil {
		t.Error(err)
	}
	named := issue(t, t.TempDir(), "127.0.0.1")
	s = start(t, servingcert.Options{SNI: []cliflag.NamedCertKey{{CertFile: named.cert, KeyFile: named.key, Names: []string{"127.0.0.1"}}}}, nil)
	if _, err := dial(s, named.pool, ""); err != nil {
		t.Error(err)
	}
}

// The serving certificate is replaced under load, its key first. No connection fails; new ones see
// the new certificate. A broken one changes nothing.
func TestCertificateReplaced(t *testing.T) {
	dir, log := t.TempDir(), &apitest.Lines{}
	old := issue(t, dir, "api.example.com")
	s := start(t, servingcert.Options{CertFile: old.cert, KeyFile: old.key}, log)
	var failed atomic.Value
	var clients sync.WaitGroup
	end := make(chan struct{})
	for range 3 {
		clients.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				// Which authority has signed it is looked at below.
				_, err := dial(s, nil, "api.example.com", func(c *tls.Config) { c.InsecureSkipVerify = true })
				if err != nil {
					failed.Store(err)
				}
			}
		})
	}
	replace(t, old.cert, "broken")
	apitest.Eventually(t, "the log tells of the broken certificate", func() bool { return strings.Contains(log.All(), "cannot be used") })
	if _, err := dial(s, old.pool, "api.example.com"); err != nil {
		t.Errorf("after a broken certificate: %v", err)
	}
	for range 3 {
		next := issue(t, dir, "api.example.com")
		apitest.Eventually(t, "the new certificate is shown", func() bool {
			_, err := dial(s, next.pool, "api.example.com")
			return err == nil
		})
	}
	close(end)
	clients.Wait()
	if err := failed.Load(); err != nil {
		t.Errorf("a connection failed: %v", err)
	}
	key, err := os.ReadFile(old.key)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(string(key), "\n"); strings.Contains(log.All(), lines[1]) {
		t.Error("the log has the key")
	}
}

// Versions, ciphers and key exchanges of TLS are limited as flags say.
func TestVersionsAndCiphers(t *testing.T) {
	s := start(t, servingcert.Options{MinVersion: "VersionTLS13"}, nil)
	old := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	if _, err := dial(s, ownPool(s), "", old); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	if state, err := dial(s, ownPool(s), ""); err != nil || state.Version != tls.VersionTLS13 {
		t.Error(state, err)
	}
	s = start(t, servingcert.Options{CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}}, nil)
	if state, err := dial(s, ownPool(s), "", old); err != nil || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 {
		t.Error(state, err)
	}
	other := func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384} }
	if _, err := dial(s, ownPool(s), "", old, other); err == nil {
		t.Error("another cipher is spoken")
	}
	s = start(t, servingcert.Options{CurvePreferences: []int32{int32(tls.CurveP384)}}, nil)
	if state, err := dial(s, ownPool(s), ""); err != nil || state.CurveID != tls.CurveP384 {
		t.Error(state, err)
	}
	curve := func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }
	if _, err := dial(s, ownPool(s), "", curve); err == nil {
		t.Error("another key exchange is spoken")
	}
}

// Options that cannot be are refused in one line, which names the flag.
func TestOptionsRefused(t *testing.T) {
	a, b := issue(t, t.TempDir(), "a"), issue(t, t.TempDir(), "b")
	for want, o := range map[string]servingcert.Options{
		"Config.Serving.CertFile and Config.Serving.KeyFile belong together": {CertFile: a.cert},
		"Config.Serving.CertFile and Config.Serving.KeyFile: ":               {CertFile: a.cert, KeyFile: b.key},
		"no such file":         {CertFile: "/nowhere", KeyFile: "/nowhere"},
		"Config.Serving.SNI: ": {SNI: []cliflag.NamedCertKey{{CertFile: a.cert, KeyFile: b.key}}},
		`Config.Serving.MinVersion: unknown tls version "2"`:      {MinVersion: "2"},
		"Config.Serving.CipherSuites: HTTP/2 needs":               {CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}},
		"Config.Serving.CipherSuites: Cipher suite X not support": {CipherSuites: []string{"X"}},
		"Config.Serving.CurvePreferences: duplicate curve":        {CurvePreferences: []int32{29, 29}},
		"Config.Serving.CurvePreferences: curve preference 70000": {CurvePreferences: []int32{70000}},
		"Config.Serving.CurvePreferences: curve preference 7 is":  {CurvePreferences: []int32{7}},
	} {
		s := server.New(server.Config{Serving: o})
		err := s.Open(t.Context())
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
