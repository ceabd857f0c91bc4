package main

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/upstream"
)

// Each way in which an etcd cannot be reached has an advice of its own.
func TestAboutEtcd(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	plain, secure, strict := httptest.NewServer(answer), httptest.NewTLSServer(answer), httptest.NewUnstartedServer(answer)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	for _, s := range []*httptest.Server{plain, secure, strict} {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	_, port, _ := strings.Cut(strings.TrimPrefix(secure.URL, "https://"), ":")
	for name, c := range map[string]struct {
		etcd upstream.Etcd
		want string
	}{
		"nobody":             {upstream.Etcd{URLs: []string{"http://127.0.0.1:1"}}, "; check that the etcd runs and takes connections from here, or write a file"},
		"foreign":            {upstream.Etcd{URLs: []string{secure.URL}}, "; write --etcd-cafile with the authority of the etcd's certificate"},
		"another name":       {upstream.Etcd{URLs: []string{"https://localhost:" + port}, CAFile: ca}, "; write a URL with a name or address that the etcd's certificate has"},
		"no TLS":             {upstream.Etcd{URLs: []string{"https" + strings.TrimPrefix(plain.URL, "http")}}, "; it speaks no TLS: write http://"},
		"TLS":                {upstream.Etcd{URLs: []string{"http" + strings.TrimPrefix(secure.URL, "https")}}, ": it speaks TLS: write https://"},
		"wants certificates": {upstream.Etcd{URLs: []string{strict.URL}, CAFile: ca}, "; write --etcd-certfile and --etcd-keyfile with a certificate that the etcd takes"},
	} {
		_, err := upstream.OpenEtcd(t.Context(), c.etcd)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if got := aboutEtcd("--etcd", err, "a file").Error(); !strings.HasPrefix(got, "--etcd: ") || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}
