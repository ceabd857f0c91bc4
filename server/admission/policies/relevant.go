package policies

import (
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// subject is what the rules of policies look at in a write, apart from names.
type subject struct {
	resource    schema.GroupVersionResource
	subresource string
	operation   apiadmission.Operation
	namespaced  bool
}

// relevant returns the policies with a rule that a write may match. Upstream's dispatchers
// look at all policies, one by one, and parse their selectors before their rules; most
// policies are about other resources. There are as many subjects as there are routes.
func (k *known[P, B, E]) relevant(a apiadmission.Attributes, o apiadmission.ObjectInterfaces, constraints func(P) *v1.MatchResources) []generic.PolicyHook[P, B, E] {
	if len(k.hooks) == 0 {
		return nil
	}
	s := subject{a.GetResource(), a.GetSubresource(), a.GetOperation(), a.GetNamespace() != ""}
	if found, ok := k.bySubject.Load(s); ok {
		return found.([]generic.PolicyHook[P, B, E])
	}
	var found []generic.PolicyHook[P, B, E]
	for _, hook := range k.hooks {
		if mayMatch(constraints(hook.Policy), a, o) {
			found = append(found, hook)
		}
	}
	k.bySubject.Store(s, found)
	return found
}

// mayMatch is false if no rule matches the resource or, where matchPolicy says so, an equivalent resource.
func mayMatch(m *v1.MatchResources, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) bool {
	if m == nil || len(m.ResourceRules) == 0 {
		return true
	}
	resources := []schema.GroupVersionResource{a.GetResource()}
	if m.MatchPolicy != nil && *m.MatchPolicy != v1.Exact {
		resources = append(resources, o.GetEquivalentResourceMapper().EquivalentResourcesFor(a.GetResource(), a.GetSubresource())...)
	}
	for _, resource := range resources {
		for _, rule := range m.ResourceRules {
			matcher := rules.Matcher{Rule: rule.RuleWithOperations, Attr: &about{a, resource}}
			if matcher.Matches() {
				return true
			}
		}
	}
	return false
}

// about is a write as if it were to another resource.
type about struct {
	apiadmission.Attributes
	resource schema.GroupVersionResource
}

// GetResource returns the other resource.
func (a *about) GetResource() schema.GroupVersionResource { return a.resource }
