package server

import (
	"bufio"
	"bytes"
	"cmp"
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
	"time"

	diff "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/tokens"
)

// audited is a configuration with an audit log, and where that is.
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

// TestAuditRecorded plays requests whose events kube-apiserver 1.33 has written under the
// same policy: blocks of a request and, below "=>", the code of the answer and the events
// without what is new each time.
func TestAuditRecorded(t *testing.T) {
	playAudited(t, "testdata/audit/recorded.txt", strings.NewReplacer())
}

// TestAuditRecordedWebhooks does so with admission webhooks.
func TestAuditRecordedWebhooks(t *testing.T) {
	hooks := httptest.NewTLSServer(http.HandlerFunc(answerReview))
	defer hooks.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hooks.Certificate().Raw})
	playAudited(t, "testdata/audit/recordedhooks.txt",
		strings.NewReplacer("HOOKS", hooks.URL, "AUTHORITY", base64.StdEncoding.EncodeToString(ca)))
}

// answerReview is a webhook whose path says what it answers.
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

// playAudited plays the blocks of a file, whose bodies fill completes.
func playAudited(t *testing.T, file string, fill *strings.Replacer) {
	blocks, err := os.ReadFile(file)
	must(t, err)
	c, log := audited(t)
	c.Tokens = tokens.Options{TokenFile: "testdata/audit/tokens.csv", Issuers: []string{"https://kubernetes.default.svc"}}
	c.DisableAdmissionPlugins = []string{"ServiceAccount"} // there is nobody who makes accounts
	c.RuntimeConfig = map[string]string{"admissionregistration.k8s.io/v1beta1": "true"}
	s := start(t, c)
	client := anonymous(t, s)
	transport := client.Transport
	client.Transport = plainly(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Accept-Encoding", "identity") // or the client's own is added
		return transport.RoundTrip(r)
	})
	var all []auditBlock
	for i, text := range strings.Split(strings.TrimSuffix(string(blocks), "----\n"), "\n----\n") {
		b := parseAudited(t, text)
		b.id, b.body = fmt.Sprintf("case-%d", i), fill.Replace(b.body)
		b.play(t, s.URL(), client)
		all = append(all, b)
	}
	must(t, s.Close()) // an answer may be there before its last event
	events := readEvents(t, log)
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) { b.compare(t, events[b.id]) })
	}
}

func (b *auditBlock) compare(t *testing.T, events []map[string]any) {
	t.Helper()
	if len(events) != len(b.events) {
		t.Fatalf("events %v, want %v", events, b.events)
	}
	for i, want := range b.events {
		if d := diff.Diff(want, asRecorded(events[i])); d != "" {
			t.Errorf("event %d (-kube-apiserver +plinth):\n%s", i, d)
		}
	}
}

type plainly func(*http.Request) (*http.Response, error)

func (f plainly) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// auditBlock is one request and what is to be logged of it.
type auditBlock struct {
	name, method, path, body string
	hasBody                  bool
	header                   http.Header
	code                     int
	events                   []any

	id string
}

func parseAudited(t *testing.T, text string) (b auditBlock) {
	t.Helper()
	request, answer, _ := strings.Cut(text, "\n=> ")
	head, body, hasBody := strings.Cut(request, "\n\n")
	b.body, b.hasBody, b.header = body, hasBody, http.Header{}
	lines := strings.Split(head, "\n")
	b.name = strings.TrimPrefix(lines[0], "# ")
	b.method, b.path, _ = strings.Cut(lines[1], " ")
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, ": ")
		b.header.Set(name, value)
	}
	code, events, _ := strings.Cut(answer, "\n")
	if _, err := fmt.Sscan(code, &b.code); err != nil {
		t.Fatalf("%s: %v", b.name, err)
	}
	for line := range strings.Lines(events) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
		b.events = append(b.events, asRecorded(event))
	}
	return b
}

// play sends the request; one that waits for something is sent until it is there, and
// nothing is said of its events.
func (b *auditBlock) play(t *testing.T, url string, client *http.Client) {
	t.Helper()
	waits := strings.HasPrefix(b.name, "wait")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.NewRequest(b.method, url+b.path, bytes.NewReader([]byte(b.body)))
		must(t, err)
		if !b.hasBody {
			r.Body = http.NoBody
		}
		r.Header = b.header.Clone()
		r.Header.Set("Audit-Id", b.id)
		if waits {
			r.Header.Del("Audit-Id")
		}
		answer, err := client.Do(r)
		must(t, err)
		var text bytes.Buffer
		_, err = text.ReadFrom(answer.Body)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode == b.code {
			return
		}
		if !waits || time.Now().After(end) {
			t.Fatalf("%s: %d, want %d: %s", b.name, answer.StatusCode, b.code, &text)
		}
	}
}

// fresh are the fields whose values are new each time.
var fresh = map[string]string{
	"uid": "UID", "resourceVersion": "VERSION", "creationTimestamp": "TIME", "deletionTimestamp": "TIME", "time": "TIME",
	"lastTransitionTime": "TIME",
}

// asRecorded is an event without its times, its id and what there cannot be twice.
func asRecorded(event map[string]any) any {
	for _, name := range []string{"requestReceivedTimestamp", "stageTimestamp", "auditID"} {
		delete(event, name)
	}
	if notes, _ := event["annotations"].(map[string]any); notes != nil {
		// Why RBAC allows: it has no effect here.
		if why, _ := notes["authorization.k8s.io/reason"].(string); strings.HasPrefix(why, "RBAC:") {
			notes["authorization.k8s.io/reason"] = ""
		}
		maps.DeleteFunc(notes, func(name string, _ any) bool {
			return strings.HasPrefix(name, "apiserver.latency.k8s.io/") // of what took long that time
		})
	}
	return withoutFresh(event)
}

func withoutFresh(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for name, v := range x {
			if text, ok := v.(string); ok && text != "" && !strings.HasSuffix(text, "-uid") && text != "7" {
				x[name] = cmp.Or(fresh[name], text)
			} else {
				x[name] = withoutFresh(v)
			}
		}
	case []any:
		for i := range x {
			x[i] = withoutFresh(x[i])
		}
	}
	return x
}
