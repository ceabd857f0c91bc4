package authn_test

import (
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/servertest"
)

// Alerts about certificates of clients that end soon read this metric of kube-apiserver.
func TestClientCertificateLifetimes(t *testing.T) {
	s := servertest.Start(t)
	client, err := clientrest.HTTPClientFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the request that shows the metrics counts, too
		_, _, text := apitest.Do(t, client, "GET", s.Config.Host+"/metrics", "")
		if !strings.Contains(text, "apiserver_client_certificate_expiration_seconds_count ") {
			t.Fatal("no lifetimes of certificates")
		}
		if !strings.Contains(text, `apiserver_client_certificate_expiration_seconds_bucket{le="1.5552e+07"} 0`) {
			t.Error("the admin's certificate ends within half a year")
		}
		if strings.Contains(text, "apiserver_client_certificate_expiration_seconds_count 0\n") {
			t.Error("the request with a certificate was not counted")
		}
	}
}
