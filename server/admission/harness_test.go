package admission_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// hook is a webhook as a row of a test configures it.
type hook struct {
	mutating bool
	rule     string // operations, then group/version/resource: "CREATE,UPDATE apps/v1/*"; empty: all of ConfigMaps
	more     string // further fields, JSON
	client   string // clientConfig, JSON; empty: this test's server
	answer   answer
}

// answer is what a webhook says to a request.
type answer func(w http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview)

// respond answers with a review that change has completed.
func respond(change func(*admissionv1.AdmissionResponse)) answer {
	return func(w http.ResponseWriter, _ *http.Request, review *admissionv1.AdmissionReview) {
		out := &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta}
		out.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		change(out.Response)
		_ = json.NewEncoder(w).Encode(out)
	}
}

var allow = respond(func(*admissionv1.AdmissionResponse) {})

// deny answers with a status, JSON; empty for none.
func deny(status string) answer {
	return respond(func(r *admissionv1.AdmissionResponse) {
		r.Allowed = false
		if status != "" {
			if err := json.Unmarshal([]byte(status), &r.Result); err != nil {
				panic(err)
			}
		}
	})
}

// patch answers with a JSON patch.
func patch(operations ...string) answer {
	return respond(func(r *admissionv1.AdmissionResponse) {
		kind := admissionv1.PatchTypeJSONPatch
		r.Patch, r.PatchType = []byte("["+strings.Join(operations, ",")+"]"), &kind
	})
}

// say answers with any body.
func say(code int, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request, _ *admissionv1.AdmissionReview) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// hang answers when the step is over. An answer as soon as the caller gives up would come
// too early: HTTP/2 hands it to a caller whose time has run out but who has not been woken yet.
func (w *webhooks) hang(http.ResponseWriter, *http.Request, *admissionv1.AdmissionReview) {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	<-over
}

// flood answers for as long as somebody reads.
func flood(w http.ResponseWriter, r *http.Request, _ *admissionv1.AdmissionReview) {
	for r.Context().Err() == nil {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

// webhooks is a server of webhooks, each with the index of its hook as its path, and a
// plinth that calls them.
type webhooks struct {
	t      *testing.T
	api    *http.Client
	url    string // of plinth
	server *httptest.Server

	mu    sync.Mutex
	hooks []hook
	asked []string
	over  <-chan struct{} // closed at the end of the step that is played
}

func newWebhooks(t *testing.T, dsn string) *webhooks {
	t.Helper()
	srv := servertest.Start(t, servertest.Options{DSN: dsn})
	api, err := clientrest.HTTPClientFor(srv.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &webhooks{t: t, api: api, url: srv.URL()}
	w.server = httptest.NewTLSServer(w)
	t.Cleanup(w.server.Close)
	return w
}

// aloneAndShared runs test with a server on fresh databases (logtest.AloneAndShared).
func aloneAndShared(t *testing.T, test func(t *testing.T, w *webhooks)) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) { test(t, newWebhooks(t, d.Fresh(t))) })
}

// ServeHTTP notes what is asked, and answers.
func (w *webhooks) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(rw, fmt.Sprint("no review: ", err), http.StatusTeapot)
		return
	}
	if review.Request.UserInfo.Username == user.APIServerUser { // the server's own writes are no row's
		allow(rw, r, review)
		return
	}
	var index int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &index)
	w.mu.Lock()
	w.asked = append(w.asked, fmt.Sprintf("%c %s", 'a'+index, question(review.Request)))
	h := hook{answer: allow} // of a call that was under way when its webhook was taken away
	if index < len(w.hooks) {
		h = w.hooks[index]
	}
	w.mu.Unlock()
	h.answer(rw, r, review)
}

// question is a request in short: what is done to what, and which objects come with it.
func question(r *admissionv1.AdmissionRequest) string {
	resource := r.Resource.Version + "/" + r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	parts := []string{string(r.Operation), resource, r.Name}
	for _, object := range []struct {
		name string
		raw  []byte
	}{{"new", r.Object.Raw}, {"old", r.OldObject.Raw}} {
		var meta struct{ APIVersion, Kind string }
		if json.Unmarshal(object.raw, &meta) == nil && meta.Kind != "" {
			parts = append(parts, object.name+"="+meta.APIVersion+"/"+meta.Kind)
		}
	}
	if r.RequestResource.Version != r.Resource.Version {
		parts = append(parts, "for "+r.RequestResource.Version)
	}
	if *r.DryRun {
		parts = append(parts, "dry")
	}
	return strings.Join(parts, " ")
}

// configure makes hooks all webhooks that there are.
func (w *webhooks) configure(hooks []hook) {
	w.t.Helper()
	w.mu.Lock()
	w.hooks = hooks
	w.mu.Unlock()
	for _, kind := range []string{"Mutating", "Validating"} {
		var list []string
		for i, h := range hooks {
			if h.mutating == (kind == "Mutating") {
				list = append(list, w.webhook(i, h))
			}
		}
		path := "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "webhookconfigurations"
		w.send("DELETE", path+"/test", "")
		if len(list) == 0 {
			continue
		}
		body := `{"kind":"` + kind + `WebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"test"},"webhooks":[` + strings.Join(list, ",") + `]}`
		if code, answer, _ := w.send("POST", path, body); code != http.StatusCreated {
			w.t.Fatalf("configure: %d %s", code, answer)
		}
	}
}

// webhook is the configuration of one.
func (w *webhooks) webhook(index int, h hook) string {
	rule := h.rule
	if rule == "" {
		rule = "* /v1/configmaps"
	}
	operations, of, _ := strings.Cut(rule, " ")
	where := strings.SplitN(of, "/", 3)
	client := h.client
	if client == "" {
		client = fmt.Sprintf(`{"url":"%s/%d","caBundle":%q}`, w.server.URL, index, w.ca())
	}
	return fmt.Sprintf(`{"name":"%c.example.com","clientConfig":%s,"admissionReviewVersions":["v1"],"sideEffects":"None",
		"rules":[{"operations":["%s"],"apiGroups":[%q],"apiVersions":[%q],"resources":[%q]}]%s}`,
		'a'+index, strings.ReplaceAll(client, "CA", w.ca()), strings.ReplaceAll(operations, ",", `","`), where[0], where[1], where[2], h.more)
}

// ca is the server's certificate, which is its own authority, for a caBundle.
func (w *webhooks) ca() string {
	block := &pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))
}

// patchTypes by the word that stands for the method.
var patchTypes = map[string]string{
	"MERGE": "application/merge-patch+json", "APPLY": "application/apply-patch+yaml", "JSON": "application/json-patch+json",
}

func (w *webhooks) send(method, path, body string) (int, string, http.Header) {
	w.t.Helper()
	media := "application/json"
	if m := patchTypes[method]; m != "" {
		method, media = "PATCH", m
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	resp, err := w.api.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// step is a request and what comes of it.
type step struct {
	hooks []hook // the webhooks from here on; nil: as before
	do    string // method and path; MERGE, APPLY and JSON are patches
	body  string
	want  string // status code, then the message of an error, or fields: "200 data/a=b data/c="
	asked string // the questions to webhooks, in order, with "; " between
}

// play does the steps.
func (w *webhooks) play(steps []step) {
	w.t.Helper()
	for i, s := range steps {
		if s.hooks != nil {
			w.configure(s.hooks)
		}
		during, end := context.WithCancel(w.t.Context())
		w.mu.Lock()
		w.asked, w.over = nil, during.Done()
		w.mu.Unlock()
		method, path, _ := strings.Cut(s.do, " ")
		code, body, _ := w.send(method, path, s.body)
		end()
		body = strings.ReplaceAll(body, w.server.URL, "URL")
		if got := outcome(code, body, s.want); got != s.want {
			w.t.Errorf("step %d, %s: got\n%s, want\n%s\n%s", i, s.do, got, s.want, body)
		}
		w.mu.Lock()
		if asked := strings.Join(w.asked, "; "); asked != s.asked {
			w.t.Errorf("step %d, %s: webhooks were asked\n%s, want\n%s", i, s.do, asked, s.asked)
		}
		w.mu.Unlock()
	}
}

// outcome is an answer in the form of want, with those fields that want has.
func outcome(code int, body, want string) string {
	var object map[string]any
	_ = json.Unmarshal([]byte(body), &object)
	got := fmt.Sprint(code)
	if code >= http.StatusBadRequest {
		return got + " " + fmt.Sprint(object["message"])
	}
	for _, field := range strings.Fields(want)[1:] {
		path, _, _ := strings.Cut(field, "=")
		got += " " + path + "=" + valueAt(object, strings.Split(path, "/"))
	}
	return got
}

func valueAt(v any, path []string) string {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			if p == "#" {
				v = len(x)
			} else if i := slices.Index([]string{"0", "1", "2"}, p); i >= 0 && i < len(x) {
				v = x[i]
			}
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
