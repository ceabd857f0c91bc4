package authn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/tokens"
)

// What several tests with whole servers need: servers, identities, authorities and logs.

// start runs a server whose tokens are looked at each time.
func start(t testing.TB, c server.Config) *server.Server {
	t.Helper()
	c.Linger, c.Controllers = 10*time.Millisecond, []string{}
	if c.Tokens.CacheFor == 0 {
		c.Tokens.CacheFor = -1
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

// openError returns why a server does not start.
func openError(c server.Config) error {
	s := server.New(c)
	err := s.Open(context.Background())
	if err == nil {
		s.Close()
	}
	return err
}

// with is a configuration with options of authentication.
func with(set func(*authn.Options)) server.Config {
	o := authn.NewOptions()
	set(o)
	return server.Config{Authentication: o, Tokens: tokens.Options{CacheFor: -1}}
}

// credentials are what a client shows.
type credentials struct {
	token  string
	cert   *tls.Certificate
	header map[string]string
}

// client returns a client that opens connections of its own.
func (c credentials) client(s *server.Server) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.RESTConfig().CAData)
	config := &tls.Config{RootCAs: roots}
	if c.cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 10}}
}

func (c credentials) request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	return r
}

const (
	unauthorized = "401"
	forbidden    = "403" // of somebody who may not even ask who they are, such as the anonymous
)

// who returns the user that the server sees.
func (c credentials) who(t testing.TB, s *server.Server) string {
	t.Helper()
	client := c.client(s)
	defer client.CloseIdleConnections()
	name, _ := c.ask(t, s, client)
	return name
}

// ask is who on a client's connection, with all that the server knows of the user.
func (c credentials) ask(t testing.TB, s *server.Server, client *http.Client) (string, authenticationv1.UserInfo) {
	t.Helper()
	code, _, body := apitest.Send(t, client, c.request(t, "POST", s.URL()+"/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`))
	var review authenticationv1.SelfSubjectReview
	switch code {
	case http.StatusCreated:
		if err := json.Unmarshal([]byte(body), &review); err != nil {
			t.Fatal(err)
		}
		return review.Status.UserInfo.Username, review.Status.UserInfo
	case http.StatusUnauthorized:
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || status.Message != "Unauthorized" || status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("401 with %s", body)
		}
		return unauthorized, authenticationv1.UserInfo{}
	case http.StatusForbidden:
		return forbidden, authenticationv1.UserInfo{}
	}
	t.Fatalf("%d %s", code, body)
	return "", authenticationv1.UserInfo{}
}

// review has the admin ask whose a token is.
func review(t testing.TB, s *server.Server, token string, audiences ...string) authenticationv1.TokenReviewStatus {
	t.Helper()
	r, err := apitest.Typed(t, s).AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// authority signs certificates of clients.
func authority(t testing.TB) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// certificate makes the certificate of a client.
func certificate(t testing.TB, by *pki.PKI, name string, life time.Duration, groups ...string) *tls.Certificate {
	t.Helper()
	certPEM, keyPEM, err := by.Client(name, groups, life)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func inPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// file writes a new file, and returns its path.
func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	replace(t, path, content)
	return path
}

// replace writes a file as most tools do: as a new one that takes the place of the old.
func replace(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
