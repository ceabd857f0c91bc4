package authn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The log has whose certificate ended when, once for many requests, and nothing of strangers.
func TestEndedCertificates(t *testing.T) {
	ours, theirs := openPKI(t), openPKI(t)
	var out bytes.Buffer
	a := NewAuthenticator(ours.ClientCAs, nobody)
	a.logger = slog.New(slog.NewTextHandler(&out, nil))
	now := time.Now()
	a.now = func() time.Time { return now }
	ask := func(c *x509.Certificate) {
		t.Helper()
		r := httptest.NewRequest("GET", "/api", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
		if _, err := a.User(r); err == nil {
			t.Error("no error")
		}
	}
	ask(client(t, theirs, "mallory", -time.Minute))
	ask(admin(theirs))
	if out.Len() > 0 {
		t.Errorf("of strangers the log has %s", &out)
	}
	ada := client(t, ours, "ada", -time.Minute)
	for range 5 {
		ask(ada)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "has ended") || !strings.Contains(got, "user=ada") || !strings.Contains(got, "ended="+ada.NotAfter.UTC().Format(time.RFC3339)) {
		t.Errorf("the log has %s", got)
	}
	out.Reset()
	now = now.Add(tellEndedEvery)
	ask(ada)
	if got := out.String(); !strings.Contains(got, "others=4") {
		t.Errorf("later the log has %s", got)
	}
}
