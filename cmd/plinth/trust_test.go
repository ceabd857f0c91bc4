package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clientPair returns a certificate of an authority that nobody knows, and its key.
func clientPair(t *testing.T, name string, end time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// TestTrust asks servers that do not take the client's certificate, or whose own is not trusted. There is one
// line, which says whose certificate it is, and no advice to start what runs.
func TestTrust(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ended := time.Now().Add(-49 * time.Hour)
	old, oldKey := clientPair(t, "ada", ended)
	fresh, freshKey := clientPair(t, "bob", time.Now().Add(time.Hour))
	other, _ := clientPair(t, "another authority", time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		ca, cert, key []byte
		want          string
	}{
		"ended":             {ca, old, oldKey, `refuses the client certificate of "ada" in the kubeconfig: it ended at ` + ended.UTC().Format(time.RFC3339) + ", 2 days ago; make another one"},
		"not known":         {ca, fresh, freshKey, `refuses the client certificate of "bob" in the kubeconfig: it is not of an authority`},
		"none":              {ca, nil, nil, "refuses the credentials in the kubeconfig"},
		"foreign authority": {other, fresh, freshKey, "its certificate is of another authority than the one in the kubeconfig: write the --kubeconfig of that server"},
	} {
		config := clientcmdapi.NewConfig()
		config.Clusters["a"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: c.ca}
		config.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.cert, ClientKeyData: c.key}
		config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
		config.CurrentContext = "a"
		file := filepath.Join(t.TempDir(), "kubeconfig")
		must(t, clientcmd.WriteToFile(*config, file))
		for _, args := range [][]string{
			{"status"}, {"backup", filepath.Join(t.TempDir(), "a.plinth")}, {"log"}, {"log", "configmaps/a"}, {"trash"}, {"blame", "configmaps/a"}, {"get", "configmaps/a", "--at", "1h"},
			{"diff", "configmaps/a"}, {"undo", "configmaps/a", "--yes"}, {"undo", "--user", "ada", "--since", "1h", "--yes"}, {"undelete", "configmaps/a"}, {"forget", "configmaps/a", "--yes"},
			{"join-command", "node-1", "--server", exampleServer}, {"addons", "coredns"},
		} {
			var stdout, stderr bytes.Buffer
			code := run(append(args, "--kubeconfig", file), &stdout, &stderr)
			if got := stderr.String(); code != 1 || !strings.Contains(got, c.want) || strings.Count(got, "\n") != 1 || stdout.Len() > 0 || strings.Contains(got, "start plinth serve") {
				t.Errorf("%s: plinth %s: exit code %d: %s%s; want %s", name, args[0], code, &stdout, got, c.want)
			}
		}
	}
}
