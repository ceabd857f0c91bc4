package server

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/tokens"
)

// audited returns a configuration with an audit log, and the path of the log.
func audited(t *testing.T) (c Config, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "audit.log")
	c.Audit = audit.NewOptions()
	c.Audit.PolicyFile, c.Audit.LogOptions.Path = "testdata/audit/policy.yaml", log
	return c, log
}

// readEvents reads a log, by the requests' ids.
func readEvents(t *testing.T, log string) map[string][]map[string]any {
	t.Helper()
	f, err := os.Open(log)
	must(t, err)
	defer f.Close()
	events := map[string][]map[string]any{}
	for s := bufio.NewReader(f); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			return events
		}
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		id := event["auditID"].(string)
		events[id] = append(events[id], event)
	}
}

// TestAuditRecorded compares the audit log with the one that kube-apiserver has written of
// the same requests under the same policy.
func TestAuditRecorded(t *testing.T) {
	playAudited(t, "testdata/audit/recorded.txt", strings.NewReplacer())
}

// TestAuditRecordedWebhooks compares the audit annotations of admission webhooks.
func TestAuditRecordedWebhooks(t *testing.T) {
	hooks := httptest.NewTLSServer(http.HandlerFunc(answerReview))
	defer hooks.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hooks.Certificate().Raw})
	playAudited(t, "testdata/audit/recordedhooks.txt",
		strings.NewReplacer("HOOKS", hooks.URL, "AUTHORITY", base64.StdEncoding.EncodeToString(ca)))
}

// answerReview is an admission webhook whose path selects the answer.
func answerReview(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path == "/broken" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	switch r.URL.Path {
	case "/patch":
		answer.PatchType = new(admissionv1.PatchType)
		*answer.PatchType = admissionv1.PatchTypeJSONPatch
		answer.Patch = []byte(`[{"op":"add","path":"/data/hooked","value":"yes"}]`)
	case "/deny":
		answer.Allowed, answer.Result = false, &metav1.Status{Message: "not here"}
	}
	if r.URL.Path != "/quiet" {
		answer.AuditAnnotations = map[string]string{"seen": "at " + r.URL.Path}
	}
	review.Request, review.Response = nil, answer
	_ = json.NewEncoder(w).Encode(review)
}

// playAudited plays the exchanges of a file, whose bodies fill completes, and compares the
// events of the audit log. An exchange whose name begins with "wait" is repeated until its
// answer is the recorded one, and its events are not compared.
func playAudited(t *testing.T, file string, fill *strings.Replacer) {
	c, log := audited(t)
	if u := recordedtest.StartUpstream(t, "testdata/audit/tokens.csv", "--audit-policy-file="+c.Audit.PolicyFile, "--audit-log-path="+log,
		"--disable-admission-plugins=ServiceAccount", "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
		"--service-account-issuer=https://kubernetes.default.svc"); u != nil {
		playAuditedBy(t, u.Anonymous, u.URL, u.Stop, file, fill, log)
		return
	}
	c.Tokens = tokens.Options{TokenFile: "testdata/audit/tokens.csv", Issuers: []string{"https://kubernetes.default.svc"}}
	c.DisableAdmissionPlugins = []string{"ServiceAccount"} // no controller makes the default accounts
	c.RuntimeConfig = map[string]string{"admissionregistration.k8s.io/v1beta1": "true"}
	s := start(t, c)
	playAuditedBy(t, apitest.Anonymous(t, s), s.URL(), func() { must(t, s.Close()) }, file, fill, log)
}

// playAuditedBy plays the exchanges with a server that writes its events to log until stop has ended it.
func playAuditedBy(t *testing.T, client *http.Client, url string, stop func(), file string, fill *strings.Replacer, log string) {
	transport := client.Transport
	client.Transport = plainly(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Accept-Encoding", "identity") // or the client adds its own
		return transport.RoundTrip(r)
	})
	exchanges := recordedtest.Read(t, file)
	for i, e := range exchanges {
		e.Body = fill.Replace(e.Body)
		if strings.HasPrefix(e.Name, "wait") {
			apitest.Eventually(t, e.Name, func() bool { return e.Ask(t, client, url).Code == e.Code })
			continue
		}
		e.Header.Set("Audit-Id", fmt.Sprintf("case-%d", i))
		if e.CheckCode(t, e.Ask(t, client, url)); t.Failed() {
			t.FailNow()
		}
	}
	stop() // an answer may be there before its last event
	events := readEvents(t, log)
	for _, e := range exchanges {
		t.Run(e.Name, func(t *testing.T) { compareEvents(t, e, events[e.Header.Get("Audit-Id")]) })
	}
}

// compareEvents compares events with those of the exchange, without their times and id.
func compareEvents(t *testing.T, e *recordedtest.Exchange, events []map[string]any) {
	t.Helper()
	var got []any
	for _, event := range events {
		for _, name := range []string{"requestReceivedTimestamp", "stageTimestamp", "auditID"} {
			delete(event, name)
		}
		if notes, _ := event["annotations"].(map[string]any); notes != nil {
			maps.DeleteFunc(notes, func(name string, _ any) bool {
				return strings.HasPrefix(name, "apiserver.latency.k8s.io/") // only requests that took long have them
			})
		}
		got = append(got, event)
	}
	e.CheckValues(t, got...)
}

type plainly func(*http.Request) (*http.Response, error)

func (f plainly) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
