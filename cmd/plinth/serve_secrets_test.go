package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// secrets are words that plinth is told, by what they are.
type secrets map[string]string

// Secrets of the test's own.
const (
	secretPassword  = "s3cret-of-the-database"
	secretStatic    = "s3cret-static-token"
	secretUnknown   = "s3cret-unknown-token"
	secretBasic     = "s3cret-of-basic"
	secretValue     = "s3cret-value-of-a-secret"
	secretPatched   = "s3cret-patched-value"
	secretReviewed  = "s3cret-reviewed-token"
	secretBootstrap = "0123s3cret456789"
	secretKey       = "s3cret-key-of-thirty-two-bytes!!"
	secretWebhook   = "s3cret-token-for-a-webhook"
	secretSignature = "s3cret-signature"
	secretCommand   = "s3cret-in-a-command"
)

// secretive starts a plinth that logs all that it can, with an audit log of metadata, and with
// secrets in its configuration.
func secretive(t *testing.T, dir, dsn string, others *services) *process {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(filepath.Dir(dir), name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	p := &process{dir: dir, log: dir + ".log", exited: make(chan struct{})}
	program, err := programFor(dsn)
	must(t, err)
	cmd := exec.Command(program, "serve", "--listen=127.0.0.1:0", "--data-dir="+dir, "--dsn="+dsn, "-v=10",
		"--audit-policy-file="+write("policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"),
		"--audit-log-path="+dir+".audit", "--enable-bootstrap-token-auth",
		"--token-auth-file="+write("tokens.csv", secretStatic+",ann,ann,\"system:masters\"\n"),
		"--oidc-issuer-url="+others.URL+"/issuer", "--oidc-client-id=plinth", "--oidc-ca-file="+write("issuer.crt", string(others.authority())),
		"--authentication-token-webhook-config-file="+write("tokens.kubeconfig", others.kubeconfig("/tokens", secretWebhook)),
		"--authorization-mode=Node,RBAC,Webhook", "--authorization-webhook-config-file="+write("rights.kubeconfig", others.kubeconfig("/rights", secretWebhook)),
		"--encryption-provider-config="+write("encryption.yaml", fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- {resources: [secrets], providers: [{secretbox: {keys: [{name: one, secret: %s}]}}, {identity: {}}]}
- {resources: [configmaps], providers: [{kms: {apiVersion: v2, name: vault, endpoint: "unix://%s/s"}}, {identity: {}}]}
- {resources: [limitranges], providers: [{kms: {apiVersion: v2, name: none, endpoint: "unix://%[2]s/none", timeout: 1s}}, {identity: {}}]}
`, base64.StdEncoding.EncodeToString([]byte(secretKey)), others.dir)))
	cmd.Dir = filepath.Dir(dir)
	cmd.Env = append(os.Environ(), asPlinth+"=1", "PLINTH_DB_PASSWORD="+secretPassword)
	must(t, p.start(cmd))
	t.Cleanup(func() {
		if p.running() {
			p.kill()
		}
	})
	return p
}

// TestSecretsStayInside keeps a server busy with secrets of all kinds. None of them is then in what
// the server has written or shows.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			dir, others := t.TempDir()+"/data", startServices(t)
			dsn := "sqlite://" + dir + "/plinth.db"
			if d.Name != "sqlite" {
				dsn = logtest.WithPassword(t, d.Fresh(t), secretPassword)
			}
			p := secretive(t, dir, dsn, others)
			known := secrets{
				"password of the database": secretPassword, "static token": secretStatic, "unknown token": secretUnknown,
				"basic password": secretBasic, "value of a Secret": secretValue, "value of a patch": secretPatched,
				"reviewed token": secretReviewed, "bootstrap token": secretBootstrap, "encryption key": secretKey,
				"token for a webhook":  secretWebhook,
				"signature of a token": secretSignature, inURL: secretCommand,
			}
			shown := known.use(t, p, others)
			known.addKeys(t, filepath.Join(dir, "pki"))
			for i, key := range others.keys {
				known[fmt.Sprintf("key %d of the key service", i)] = key
			}
			var err error
			shown["command line"], err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
			must(t, err)
			must(t, p.stop())
			checkModes(t, dir)
			known.readFiles(t, p, shown)
			known.check(t, shown)
			for what, words := range map[string]string{
				"log": "DEBUG", "audit log": `"level":"Metadata"`, "metrics": "apiserver_request_total", "command line": "--audit-log-path",
			} {
				if !bytes.Contains(shown[what], []byte(words)) {
					t.Errorf("no %s in the %s", words, what)
				}
			}
		})
	}
}

// inURL is the secret that a client has put in a URL, which is recorded as upstream does.
const inURL = "secret in a URL"

// use sends the secrets in all ways, adds those that the server makes, and returns what it shows.
func (s secrets) use(t *testing.T, p *process, others *services) map[string][]byte {
	t.Helper()
	shown := map[string][]byte{}
	kube := kubernetes.NewForConfigOrDie(p.config(t))
	core := kube.CoreV1()
	soon(t, "there is the default account", func() bool {
		_, err := core.ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	made, err := core.ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	s["token of an account"] = made.Status.Token
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "one"}, StringData: map[string]string{"k": secretValue}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system"}, Type: corev1.SecretTypeBootstrapToken, StringData: map[string]string{
			"token-id": "abcdef", "token-secret": secretBootstrap, "usage-bootstrap-authentication": "true",
		}},
	} {
		namespace := secret.Namespace
		if namespace == "" {
			namespace = "default"
		}
		_, err := core.Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		must(t, err)
	}
	others.hook(t, kube)
	_, err = kube.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: secretReviewed}}, metav1.CreateOptions{})
	must(t, err)
	requests := s.requests()
	for _, token := range []string{others.jwt(), others.jwt() + "x", "a.b.c"} {
		requests = append(requests, secretRequest{"GET", "/api/v1/secrets", http.Header{"Authorization": {"Bearer " + token}}, nil, "401"})
	}
	requests = append(requests, secretRequest{"POST", "/api/v1/namespaces/default/secrets", nil,
		fmt.Appendf(nil, `{"metadata":{"name":"seen"},"stringData":{"k":%q}}`, secretValue), "201"})
	for i, r := range requests {
		c, err := clientFor(p.kubeconfig(), "")
		must(t, err)
		if r.header.Get("Authorization") != "" || r.header.Get("Sec-Websocket-Protocol") != "" {
			c, err = clientFor(strangersKubeconfig(t, p), "")
			must(t, err)
		}
		if r.header == nil {
			r.header = http.Header{}
		}
		out, err := exchange(c, r.method, p.url+r.path, r.header, r.body)
		must(t, err)
		c.CloseIdleConnections()
		if strings.HasPrefix(out, "HTTP 4") || strings.HasPrefix(out, "HTTP 5") {
			shown[fmt.Sprintf("error %d, %s", i, r.path)] = []byte(out)
		}
		if r.wants != "" && !strings.HasPrefix(out, "HTTP "+r.wants) {
			t.Errorf("%s %s: %.300s, want %s", r.method, r.path, out, r.wants)
		}
	}
	for path, authorization := range map[string]string{
		"/tokens": "Bearer " + secretWebhook, "/rights": "Bearer " + secretWebhook, "/issuer/keys": "", "/admission": "",
	} {
		if !others.wasSent(path, authorization) {
			t.Errorf("nobody has asked at %s: %v", path, others.sent)
		}
	}
	for name, path := range map[string]string{
		"metrics": "/metrics", "state of fairness": "/debug/api_priority_and_fairness/dump_requests", "probe": "/readyz?verbose",
	} {
		shown[name] = []byte(request(t, p, "GET", path, ""))
	}
	return shown
}

type secretRequest struct {
	method, path string
	header       http.Header
	body         []byte
	wants        string // status
}

func (s secrets) requests() []secretRequest {
	const one = "/api/v1/namespaces/default/secrets/one"
	token := s["token of an account"]
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	typed := func(media string) http.Header { return http.Header{"Content-Type": {media}} }
	value := base64.StdEncoding.EncodeToString([]byte(secretPatched))
	return []secretRequest{
		{"GET", one, bearer(secretStatic), nil, "200"},
		{"GET", one, bearer(secretUnknown), nil, "401"},
		{"GET", one, bearer(token), nil, "403"},
		{"GET", one, bearer("abcdef." + secretBootstrap), nil, "500"},
		{"GET", one, bearer(token[:len(token)-5]), nil, "401"},
		{"GET", one + "?token=" + secretUnknown[:3], http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+secretBasic))}}, nil, "403"},
		{"GET", "/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=1", http.Header{
			"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(secretUnknown))},
			"Connection":             {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
		}, nil, ""},
		{"PATCH", one, typed("application/merge-patch+json"), fmt.Appendf(nil, `{"data":{"k":%q}}`, value), "200"},
		{"PATCH", one, typed("application/json-patch+json"), fmt.Appendf(nil, `[{"op":"test","path":"/data/k","value":"eA=="},{"op":"add","path":"/data/k","value":%q}]`, value), "422"},
		{"PATCH", one + "?fieldManager=m&force=true", typed("application/apply-patch+yaml"), fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"},"stringData":{"k":%q}}`, secretPatched), "200"},
		{"PUT", one, nil, fmt.Appendf(nil, `{"metadata":{"name":"one","resourceVersion":"1"},"stringData":{"k":%q}}`, secretValue), "409"},
		{"POST", "/api/v1/namespaces/default/secrets", nil, fmt.Appendf(nil, `{"metadata":{"name":"one"},"stringData":{"k":%q}}`, secretValue), "409"},
		{"POST", "/api/v1/namespaces/default/secrets", nil, fmt.Appendf(nil, `{"metadata":{"name":"tls"},"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":%q}}`, secretValue), "422"},
		{"POST", "/api/v1/namespaces/none/secrets", nil, fmt.Appendf(nil, `{"metadata":{"name":"x"},"stringData":{"k":%q}}`, secretValue), "404"},
		{"DELETE", "/api/v1/namespaces/default/secrets?labelSelector=none", nil, nil, "200"},
		{"POST", "/api/v1/namespaces/default/configmaps", nil, fmt.Appendf(nil, `{"metadata":{"name":"one"},"data":{"k":%q}}`, secretValue), "201"},
		{"POST", "/api/v1/namespaces/default/limitranges", nil, fmt.Appendf(nil, `{"metadata":{"name":"one","annotations":{"k":%q}}}`, secretValue), "500"},
		{"POST", "/api/v1/namespaces/default/pods/none/exec?command=" + secretCommand, nil, nil, ""},
		{"POST", "/api/v1/namespaces/default/services/none/proxy/x?y=" + secretCommand, nil, nil, ""},
	}
}

// strangersKubeconfig trusts the server and has no credentials.
func strangersKubeconfig(t *testing.T, p *process) string {
	t.Helper()
	text, err := os.ReadFile(p.kubeconfig())
	must(t, err)
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "client-certificate-data") && !strings.Contains(line, "client-key-data") {
			kept = append(kept, line)
		}
	}
	path := p.dir + ".stranger"
	must(t, os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600))
	return path
}

// addKeys adds a line out of the middle of each private key.
func (s secrets) addKeys(t *testing.T, dir string) {
	t.Helper()
	keys, err := filepath.Glob(filepath.Join(dir, "*.key"))
	must(t, err)
	if len(keys) < 3 {
		t.Fatalf("keys: %v", keys)
	}
	for _, file := range keys {
		text, err := os.ReadFile(file)
		must(t, err)
		s["key "+filepath.Base(file)] = strings.Split(string(text), "\n")[2]
	}
}

// readFiles adds what the server has written: its log, its audit log, and the files of its data
// but those of keys.
func (s secrets) readFiles(t *testing.T, p *process, shown map[string][]byte) {
	t.Helper()
	var err error
	shown["log"] = []byte(p.logged())
	shown["audit log"], err = os.ReadFile(p.dir + ".audit")
	must(t, err)
	must(t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".key" || path == p.kubeconfig() {
			return err
		}
		shown["file "+path], err = os.ReadFile(path)
		return err
	}))
}

// checkModes asserts that nobody else reads more than certificates.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 && filepath.Ext(path) != ".crt" {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
}

// check looks for the secrets as they are, in base64, in hexadecimal, as numbers, and quoted.
func (s secrets) check(t *testing.T, shown map[string][]byte) {
	t.Helper()
	for what, secret := range s {
		if secret == "" {
			t.Fatalf("no %s", what)
		}
		forms := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret),
			fmt.Sprintf("%x", secret), fmt.Sprint([]byte(secret)), strings.Trim(strconv.Quote(secret), `"`)}
		for where, text := range shown {
			if what == inURL && where == "audit log" {
				if !bytes.Contains(text, []byte(secret)) {
					t.Error("the audit log has no URLs")
				}
				continue
			}
			for _, form := range forms {
				if i := bytes.Index(text, []byte(form)); i >= 0 {
					t.Errorf("the %s is in the %s: %s", what, where, strconv.QuoteToASCII(string(text[max(0, i-200):min(len(text), i+len(form)+50)])))
					break
				}
			}
		}
	}
}
