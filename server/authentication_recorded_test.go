package server

import (
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/tokens"
)

// TestIdentitiesRecorded asks plinth who is who, and compares with what kube-apiserver 1.33 says.
func TestIdentitiesRecorded(t *testing.T) { playIdentities(t, "testdata/recorded/identities.txt") }

// TestImpersonationRecorded gives a person the right to be somebody else, part by part.
func TestImpersonationRecorded(t *testing.T) {
	playIdentities(t, "testdata/recorded/impersonation.txt")
}

func playIdentities(t *testing.T, file string) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		c := Config{DSN: d.Fresh(t), Authentication: authn.NewOptions(), Tokens: tokens.Options{
			TokenFile: "testdata/audit/tokens.csv",
			Issuers:   []string{"https://kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc"},
		}}
		c.Authentication.BootstrapToken.Enable = true
		s := start(t, c)
		client := apitest.Anonymous(t, s)
		for _, e := range recordedtest.Read(t, file) {
			t.Run(e.Name, func(t *testing.T) {
				text, plain := e.Values[0].(string)
				if !plain {
					e.Play(t, client, s.URL())
				} else if a := e.Ask(t, client, s.URL()); a.Code != e.Code || string(a.Body) != text {
					t.Errorf("%d %q, want %d %q", a.Code, a.Body, e.Code, text)
				}
			})
		}
	})
}
