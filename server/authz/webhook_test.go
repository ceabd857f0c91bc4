package authz

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// hook is a webhook authorizer of the tests' own.
type hook struct {
	*httptest.Server
	file  string // its kubeconfig
	asked atomic.Int64
	// answer is what it does next.
	answer atomic.Pointer[func(w http.ResponseWriter, review *authorizationv1.SubjectAccessReview)]
}

func startHook(t *testing.T, answer func(http.ResponseWriter, *authorizationv1.SubjectAccessReview)) *hook {
	t.Helper()
	h := &hook{file: filepath.Join(t.TempDir(), "webhook.kubeconfig")}
	h.answer.Store(&answer)
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		(*h.answer.Load())(w, review)
	}))
	t.Cleanup(h.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})))
	writeFile(t, h.file, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":%q}}],
		"users":[{"name":"u"}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, h.URL, ca))
	return h
}

func (h *hook) then(answer func(http.ResponseWriter, *authorizationv1.SubjectAccessReview)) {
	h.answer.Store(&answer)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func says(status authorizationv1.SubjectAccessReviewStatus) func(http.ResponseWriter, *authorizationv1.SubjectAccessReview) {
	return func(w http.ResponseWriter, review *authorizationv1.SubjectAccessReview) {
		review.Status = status
		_ = json.NewEncoder(w).Encode(review) // the client may be gone
	}
}

func text(code int, body string) func(http.ResponseWriter, *authorizationv1.SubjectAccessReview) {
	return func(w http.ResponseWriter, _ *authorizationv1.SubjectAccessReview) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// quickly makes options whose webhooks are asked twice, without pauses.
func quickly(o *Options) *Options {
	o.WebhookRetryBackoff = &wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 2}
	return o
}

var readPods = authorizer.AttributesRecord{Verb: "get", Namespace: "n", Resource: "pods", Name: "p", APIVersion: "v1", ResourceRequest: true}

func decide(t *testing.T, a authorizer.Authorizer, who user.Info) (authorizer.Decision, string, error) {
	t.Helper()
	what := readPods
	what.User = who
	return a.Authorize(t.Context(), what)
}

// A webhook that permits, refuses, has no opinion, is away, or talks nonsense, before RBAC.
func TestWebhook(t *testing.T) {
	store := openStore(t)
	put(t, store, clusterRolePrefix, clusterRole("reader", rule(all("get"), all(""), all("pods"), nil)))
	put(t, store, clusterRoleBindingPrefix, clusterBinding("reader", "reader", toUser("rita")))
	h := startHook(t, nil)
	a := newAuthorizer(t, store, quickly(&Options{Modes: all("Webhook", "RBAC"), WebhookConfigFile: h.file, WebhookVersion: "v1"}))
	for _, tt := range []struct {
		name     string
		answer   func(http.ResponseWriter, *authorizationv1.SubjectAccessReview)
		ada      authorizer.Decision // has no role
		rita     authorizer.Decision
		adaFails bool
	}{
		{"allows", says(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "so"}), authorizer.DecisionAllow, authorizer.DecisionAllow, false},
		{"denies", says(authorizationv1.SubjectAccessReviewStatus{Denied: true}), authorizer.DecisionDeny, authorizer.DecisionDeny, false},
		{"has no opinion", says(authorizationv1.SubjectAccessReviewStatus{}), authorizer.DecisionNoOpinion, authorizer.DecisionAllow, false},
		{"says both", says(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}), authorizer.DecisionDeny, authorizer.DecisionDeny, true},
		{"fails", text(500, "{}"), authorizer.DecisionNoOpinion, authorizer.DecisionAllow, true},
		{"does not know itself", text(404, "nowhere"), authorizer.DecisionNoOpinion, authorizer.DecisionAllow, true},
		{"talks nonsense", text(200, "\x00{["+strings.Repeat("[", 5000)), authorizer.DecisionNoOpinion, authorizer.DecisionAllow, true},
		{"answers another kind", text(200, `{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}`), authorizer.DecisionNoOpinion, authorizer.DecisionAllow, true},
		{"breaks off", func(http.ResponseWriter, *authorizationv1.SubjectAccessReview) { panic(http.ErrAbortHandler) }, authorizer.DecisionNoOpinion, authorizer.DecisionAllow, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h.then(tt.answer)
			if decision, reason, err := decide(t, a, ada); decision != tt.ada || (err != nil) != tt.adaFails {
				t.Errorf("ada: %v %q %v", decision, reason, err)
			}
			if decision, reason, err := decide(t, a, person("rita")); decision != tt.rita {
				t.Errorf("rita: %v %q %v", decision, reason, err)
			}
		})
	}
	before := h.asked.Load()
	if decision, _, _ := decide(t, a, root); decision != authorizer.DecisionAllow || h.asked.Load() != before {
		t.Errorf("system:masters: %v, and the webhook was asked", decision)
	}
	h.Close()
	if decision, _, err := decide(t, a, ada); decision != authorizer.DecisionNoOpinion || err == nil {
		t.Errorf("the webhook is away: %v %v", decision, err)
	}
	if decision, _, _ := decide(t, a, person("rita")); decision != authorizer.DecisionAllow {
		t.Errorf("rita while it is away: %v", decision)
	}
}

// A webhook gets the whole question, and is asked once about it as long as its answer is kept.
func TestWebhookCache(t *testing.T) {
	var last atomic.Pointer[authorizationv1.SubjectAccessReview]
	h := startHook(t, func(w http.ResponseWriter, review *authorizationv1.SubjectAccessReview) {
		last.Store(review.DeepCopy())
		says(authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.User == "ada"})(w, review)
	})
	a := newAuthorizer(t, openStore(t), quickly(&Options{
		Modes: all("Webhook"), WebhookConfigFile: h.file, WebhookVersion: "v1",
		WebhookCacheAuthorizedTTL: time.Hour, WebhookCacheUnauthorizedTTL: time.Nanosecond,
	}))
	r := httptest.NewRequest("GET", "/api/v1/namespaces/n/pods?labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dx", nil)
	info, err := paths.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if decision, _, err := a.Authorize(t.Context(), Attributes(ada, info)); decision != authorizer.DecisionAllow {
			t.Error(decision, err)
		}
	}
	if n := h.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	asked := last.Load().Spec.ResourceAttributes
	if asked == nil || asked.Verb != "list" || asked.Resource != "pods" || asked.FieldSelector == nil || asked.LabelSelector == nil || asked.LabelSelector.Requirements[0].Key != "a" {
		t.Errorf("it was asked %+v", asked)
	}
	for range 3 {
		time.Sleep(time.Millisecond)
		if decision, _, _ := a.Authorize(t.Context(), Attributes(person("eve"), info)); decision != authorizer.DecisionNoOpinion {
			t.Error(decision)
		}
	}
	if n := h.asked.Load(); n != 4 {
		t.Errorf("it was asked %d times, the last three about a refusal that is not kept", n)
	}
}
