package authz

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// configured is an AuthorizationConfiguration of these authorizers, each in JSON.
func configured(authorizers ...string) string {
	return `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[` + strings.Join(authorizers, ",") + `]}`
}

func asWebhook(name string, h *hook, failure, condition string) string {
	conditions := ""
	if condition != "" {
		conditions = fmt.Sprintf(`,"matchConditions":[{"expression":%q}]`, condition)
	}
	return fmt.Sprintf(`{"type":"Webhook","name":%q,"webhook":{"timeout":"20s","authorizedTTL":"1ns","unauthorizedTTL":"1ns","failurePolicy":%q,
		"subjectAccessReviewVersion":"v1","matchConditionSubjectAccessReviewVersion":"v1","connectionInfo":{"type":"KubeConfigFile","kubeConfigFile":%q}%s}}`,
		name, failure, h.file, conditions)
}

const (
	asRBAC = `{"type":"RBAC","name":"rbac"}`
	asNode = `{"type":"Node","name":"node"}`
)

var (
	allows = says(authorizationv1.SubjectAccessReviewStatus{Allowed: true})
	denies = says(authorizationv1.SubjectAccessReviewStatus{Denied: true})
)

// Several webhooks with conditions and policies, by a configuration.
func TestConfiguration(t *testing.T) {
	first, second := startHook(t, denies), startHook(t, allows)
	file := filepath.Join(t.TempDir(), "authorization.json")
	config := configured(
		asWebhook("first", first, "Deny", `has(request.resourceAttributes) && request.user == 'eve'`),
		asWebhook("second", second, "NoOpinion", `has(request.resourceAttributes) && request.resourceAttributes.namespace == 'n'`), asRBAC)
	writeFile(t, file, config)
	a := newAuthorizer(t, openStore(t), quickly(&Options{AuthorizationConfigurationFile: file}))
	check := func(who string, want authorizer.Decision, asked1, asked2 int64) {
		t.Helper()
		before1, before2 := first.asked.Load(), second.asked.Load()
		decision, reason, err := decide(t, a, person(who))
		if n1, n2 := first.asked.Load()-before1, second.asked.Load()-before2; decision != want || n1 != asked1 || n2 != asked2 {
			t.Errorf("%s: %v %q %v; the webhooks were asked %d and %d times", who, decision, reason, err, n1, n2)
		}
	}
	check("eve", authorizer.DecisionDeny, 1, 0)
	check("ada", authorizer.DecisionAllow, 0, 1)
	first.then(text(500, ""))
	check("eve", authorizer.DecisionDeny, 2, 0)
	if changed, err := a.reload([]byte(strings.ReplaceAll(config, "20s", "100ms"))); !changed || err != nil {
		t.Fatal(changed, err)
	}
	second.then(func(w http.ResponseWriter, review *authorizationv1.SubjectAccessReview) {
		time.Sleep(300 * time.Millisecond)
		allows(w, review)
	})
	before := second.asked.Load()
	decision, reason, err := decide(t, a, ada)
	// A time-out is not tried again. On a busy machine the time is over before the webhook is asked.
	if n := second.asked.Load() - before; decision != authorizer.DecisionNoOpinion || n > 1 {
		t.Errorf("%v %q %v; the webhook was asked %d times", decision, reason, err, n)
	}
	what := readPods
	what.User, what.Namespace = ada, "elsewhere"
	if decision, _, err := a.Authorize(t.Context(), what); decision != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("no webhook's condition holds: %v %v", decision, err)
	}
}

// A configuration is taken up when its file changes, and left alone when the file is wrong; under
// load, with each decision that of one configuration or the other.
func TestReload(t *testing.T) {
	h := startHook(t, allows)
	file := filepath.Join(t.TempDir(), "authorization.json")
	permits, refuses := configured(asWebhook("w", h, "Deny", ""), asRBAC), configured(asRBAC)
	writeFile(t, file, permits)
	a := newAuthorizer(t, openStore(t), quickly(&Options{AuthorizationConfigurationFile: file}))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { a.Run(ctx, "test") })
	for range 4 {
		running.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := decide(t, a, ada); err != nil {
					t.Error(err)
				}
			}
		})
	}
	await := func(name, text string, want authorizer.Decision) {
		t.Helper()
		writeFile(t, file, text)
		for begun := time.Now(); ; time.Sleep(time.Millisecond) {
			if decision, _, _ := decide(t, a, ada); decision == want {
				return
			}
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("%s is not taken up", name)
			}
		}
	}
	refused := func(text string, want int) {
		t.Helper()
		writeFile(t, file, text)
		for begun := time.Now(); len(a.Refused()) != want; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("refused: %v, want %d", a.Refused(), want)
			}
		}
	}
	refused("{", 1)
	refused(permits, 0)
	for range 5 {
		await("a configuration without the webhook", refuses, authorizer.DecisionNoOpinion)
		await("a configuration with the webhook", permits, authorizer.DecisionAllow)
	}
}

// A wrong configuration is refused for what is wrong, and changes nothing.
func TestReloadRefuses(t *testing.T) {
	h := startHook(t, allows)
	file := filepath.Join(t.TempDir(), "authorization.json")
	writeFile(t, file, configured(asWebhook("w", h, "Deny", ""), asRBAC))
	a := newAuthorizer(t, openStore(t), quickly(&Options{AuthorizationConfigurationFile: file}))
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "{", "failed to load AuthorizationConfiguration"},
		{"empty", "", "at least one authorization mode must be defined"},
		{"without RBAC", configured(asWebhook("w", h, "Deny", "")), "missing required types: [RBAC]"},
		{"with Node", configured(asRBAC, asNode), "authorizer type Node is not allowed if it was not enabled at initial server startup"},
		{"a name of one's own", configured(`{"type":"RBAC","name":"mine"}`), "expected name rbac for authorizer RBAC instead of mine"},
		{"a condition that does not compile", configured(asWebhook("w", h, "Deny", "request.nope"), asRBAC), "matchConditions"},
		{"no kubeconfig", configured(strings.Replace(asWebhook("w", h, "Deny", ""), h.file, h.file+".gone", 1), asRBAC), "error loading file"},
		{"two of a name", configured(asWebhook("w", h, "Deny", ""), asWebhook("w", h, "Deny", ""), asRBAC), "Duplicate value"},
	} {
		if changed, err := a.reload([]byte(tt.text)); changed || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v %v", tt.name, changed, err)
		}
		if decision, _, _ := decide(t, a, ada); decision != authorizer.DecisionAllow {
			t.Errorf("%s: the configuration before is not in force", tt.name)
		}
	}
	if changed, err := a.reload([]byte(configured(asRBAC, asWebhook("w", h, "Deny", ""), `{"type":"AlwaysDeny","name":"alwaysdeny"}`))); !changed || err != nil {
		t.Errorf("another order, and one more: %v %v", changed, err)
	}
}
