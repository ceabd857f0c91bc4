package server

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/audit"
)

// usualPolicy is what documentation of Kubernetes advises: Secrets and tokens by their metadata, all else whole.
const usualPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[
{"level":"None","users":["system:apiserver"]},
{"level":"Metadata","resources":[{"group":"","resources":["secrets","secrets/*","serviceaccounts/token"]},{"group":"authentication.k8s.io","resources":["tokenreviews"]}]},
{"level":"RequestResponse"}]}`

// TestAuditSecrets has a policy that leaves Secrets and tokens out, and everything else whole. What was in a
// Secret is in no event and no line of the log, by whatever way it was read: the API, the history, backups.
func TestAuditSecrets(t *testing.T) {
	var lines bytes.Buffer
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	must(t, os.WriteFile(policy, []byte(usualPolicy), 0o600))
	c := Config{Audit: audit.NewOptions(), Log: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	c.Audit.PolicyFile, c.Audit.LogOptions.Path = policy, log
	s := start(t, c)
	client := apitest.Admin(t, s)
	const first, second, third = "hunter2-first", "hunter2-second", "hunter2-third"
	secrets := s.URL() + "/api/v1/namespaces/default/secrets"
	body := func(value string) string {
		return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"p":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"}}`
	}
	asked(t, client, "create", "POST", secrets, body(first))
	asked(t, client, "update", "PUT", secrets+"/s", body(second))
	for _, p := range []struct{ media, body string }{
		{"merge-patch+json", `{"stringData":{"p":"` + third + `"}}`},
		{"merge-patch+json", `{"data":{"bad":7}}`}, // the answers to these quote the whole object
		{"json-patch+json", `[{"op":"add","path":"/data/bad","value":7}]`},
		{"strategic-merge-patch+json", `{"data":{"bad":7}}`},
		{"merge-patch+json", `{"unknown":1,"data":{"bad":7}}`},
	} {
		patch, err := http.NewRequest("PATCH", secrets+"/s?fieldValidation=Strict", strings.NewReader(p.body))
		must(t, err)
		patch.Header.Set("Content-Type", "application/"+p.media)
		answer, err := client.Do(patch)
		must(t, err)
		answer.Body.Close()
	}
	apitest.AddAccount(t, s, "robot")
	token := apitest.RequestToken(t, s, "robot", authenticationv1.TokenRequestSpec{})
	history := s.URL() + "/apis/history.plinth.io/v1"
	for _, path := range []string{
		secrets, secrets + "/s", secrets + "?watch=1&timeoutSeconds=1", secrets + "/bad%00name",
		history + "/namespaces/default/versions?fieldSelector=object.resource%3Dsecrets", history + "/namespaces/default/changes", history + "/changes", history + "/versions",
		s.URL() + "/plinth/backup?history=true", s.URL() + "/plinth/backup", s.URL() + "/plinth/digest", s.URL() + "/plinth/status",
	} {
		if code := asked(t, client, "read", "GET", path, ""); code != 200 && !strings.Contains(path, "bad") {
			t.Errorf("%s: code %d", path, code)
		}
	}
	asked(t, client, "review", "POST", s.URL()+"/apis/authentication.k8s.io/v1/tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"`+token+`"}}`)
	asked(t, client, "bad", "POST", secrets, strings.Replace(body(first), `"p"`, `"p/!"`, 1))
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Sec-Websocket-Protocol": "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token)) + ", base64.binary.k8s.io"} {
		r, err := http.NewRequest("GET", secrets+"?watch=1&timeoutSeconds=1", nil)
		must(t, err)
		r.Header.Set(name, value)
		if strings.HasPrefix(name, "Sec") {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-Websocket-Version", "13")
			r.Header.Set("Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		}
		if answer, err := client.Do(r); err == nil {
			_, _ = io.CopyN(io.Discard, answer.Body, 1)
			answer.Body.Close()
		}
	}
	must(t, s.Close())
	events, err := os.ReadFile(log)
	must(t, err)
	if len(events) == 0 {
		t.Fatal("no events")
	}
	for _, secret := range []string{first, second, third, token} {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
			for where, text := range map[string]string{"audit log": string(events), "log": lines.String()} {
				for line := range strings.Lines(text) {
					if strings.Contains(line, form) {
						t.Errorf("the %s has %.14s…: %.600s", where, form, line)
					}
				}
			}
		}
	}
}
