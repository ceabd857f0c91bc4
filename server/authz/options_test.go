package authz

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestCheckOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    *Options
		want string
	}{
		{"none", nil, ""},
		{"the defaults", NewOptions(), ""},
		{"a zero value", &Options{}, ""},
		{"a mode that is none", &Options{Modes: all("Magic")}, `authorization-mode "Magic" is not a valid mode; write some of AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node`},
		{"a mode twice", &Options{Modes: all("RBAC", "RBAC")}, "more than once"},
		{"ABAC without a policy", &Options{Modes: all("ABAC")}, "policy file not passed"},
		{"Webhook without a kubeconfig", &Options{Modes: all("Webhook")}, "config file not passed"},
		{"a kubeconfig without Webhook", &Options{Modes: all("RBAC"), WebhookConfigFile: "x"}, "without mode Webhook"},
		{"a configuration that is not there", &Options{AuthorizationConfigurationFile: "nowhere"}, "no such file"},
	} {
		err := CheckOptions(tt.o)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The modes that need nothing else.
func TestModes(t *testing.T) {
	store := openStore(t)
	policy := filepath.Join(t.TempDir(), "abac.jsonl")
	writeFile(t, policy, `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"ada","namespace":"n","resource":"pods","apiGroup":"*"}}`)
	for _, tt := range []struct {
		o         *Options
		ada, root authorizer.Decision
	}{
		{&Options{Modes: all("AlwaysAllow")}, authorizer.DecisionAllow, authorizer.DecisionAllow},
		{&Options{Modes: all("AlwaysDeny")}, authorizer.DecisionNoOpinion, authorizer.DecisionAllow},
		{&Options{Modes: all("AlwaysDeny", "AlwaysAllow")}, authorizer.DecisionAllow, authorizer.DecisionAllow},
		{&Options{Modes: all("ABAC"), PolicyFile: policy}, authorizer.DecisionAllow, authorizer.DecisionAllow},
		{&Options{Modes: all("Node")}, authorizer.DecisionNoOpinion, authorizer.DecisionAllow},
		{&Options{Modes: all("RBAC")}, authorizer.DecisionNoOpinion, authorizer.DecisionAllow},
	} {
		a := newAuthorizer(t, store, tt.o)
		if decision, _, err := decide(t, a, ada); decision != tt.ada || err != nil {
			t.Errorf("%v: ada %v %v", tt.o.Modes, decision, err)
		}
		if decision, _, err := decide(t, a, root); decision != tt.root || err != nil {
			t.Errorf("%v: root %v %v", tt.o.Modes, decision, err)
		}
	}
}
