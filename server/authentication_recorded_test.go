package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/tokens"
)

// TestIdentitiesRecorded asks plinth who is who, and compares with what kube-apiserver says.
func TestIdentitiesRecorded(t *testing.T) { playIdentities(t, "testdata/recorded/identities.txt") }

// TestImpersonationRecorded gives a person the right to be somebody else, part by part.
func TestImpersonationRecorded(t *testing.T) {
	playIdentities(t, "testdata/recorded/impersonation.txt")
}

func playIdentities(t *testing.T, file string) {
	play := func(t *testing.T, client *http.Client, url string) {
		for _, e := range recordedtest.Read(t, file) {
			t.Run(e.Name, func(t *testing.T) {
				a := e.Ask(t, client, url)
				if strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
					e.Check(t, a, string(a.Body))
				} else {
					e.CheckBody(t, a)
				}
			})
		}
	}
	const tokenFile = "testdata/audit/tokens.csv"
	issuers := []string{"https://kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc"}
	if u := recordedtest.StartUpstream(t, tokenFile, "--enable-bootstrap-token-auth",
		"--service-account-issuer="+issuers[0], "--service-account-issuer="+issuers[1]); u != nil {
		play(t, u.Anonymous, u.URL)
		return
	}
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		c := Config{DSN: d.Fresh(t), Authentication: authn.NewOptions(), Tokens: tokens.Options{TokenFile: tokenFile, Issuers: issuers}}
		c.Authentication.BootstrapToken.Enable = true
		s := start(t, c)
		play(t, apitest.Anonymous(t, s), s.URL())
	})
}
