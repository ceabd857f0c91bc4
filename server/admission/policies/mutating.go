package policies

import (
	"context"

	v1 "k8s.io/api/admissionregistration/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/manifest/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kubernetes/pkg/admission/plugin/policy/manifest/loader"

	"github.com/plinth-io/plinth/server/lister"
	storeobject "github.com/plinth-io/plinth/sqlstore/object"
)

// NewMutating returns the plugin that asks MutatingAdmissionPolicies. It changes objects as
// upstream's MutatingAdmissionPolicy does. There is nothing to change in a DELETE, so it is
// not asked about those.
// https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/
func NewMutating(o Options) (apiadmission.MutationInterface, error) {
	s := source[*mutating.Policy, *mutating.PolicyBinding]{
		policyPrefix:  storeobject.Prefix(v1.GroupName, "mutatingadmissionpolicies"),
		bindingPrefix: storeobject.Prefix(v1.GroupName, "mutatingadmissionpolicybindings"),
	}
	s.policies = func() ([]*mutating.Policy, error) { return lister.Everything[mutating.Policy](o.Store, s.policyPrefix) }
	s.bindings = func() ([]*mutating.PolicyBinding, error) {
		return lister.Everything[mutating.PolicyBinding](o.Store, s.bindingPrefix)
	}
	p := &mutatingPolicies{policies[*mutating.Policy, *mutating.PolicyBinding, mutating.PolicyEvaluator]{
		Handler: apiadmission.NewHandler(apiadmission.Create, apiadmission.Update, apiadmission.Connect),
		o:       o,
		source:  s,
		of: accessors[*mutating.Policy, *mutating.PolicyBinding]{
			policy: mutating.NewMutatingAdmissionPolicyAccessor, binding: mutating.NewMutatingAdmissionPolicyBindingAccessor,
		},
		compile: compileMutating,
		open: func(m *matching.Matcher) generic.Dispatcher[mutating.PolicyHook] {
			return mutating.NewDispatcher(o.Authorizer, m, &typeConverters{o.Kinds})
		},
	}}
	return p, p.follow(static[*mutating.Policy, *mutating.PolicyBinding, mutating.PolicyEvaluator]{
		plugin: metrics.MAPManifestType,
		load: func(dir string) ([]*mutating.Policy, []*mutating.PolicyBinding, string, error) {
			found, err := loader.LoadMutatingManifestsFromDirectory(dir)
			if err != nil {
				return nil, nil, "", err
			}
			return found.Policies, found.Bindings, found.Hash, nil
		},
		compile: func(policy *mutating.Policy) (mutating.PolicyEvaluator, error) {
			compiled := compileMutating(policy)
			return compiled, compiled.Error
		},
	})
}

type mutatingPolicies struct {
	policies[*mutating.Policy, *mutating.PolicyBinding, mutating.PolicyEvaluator]
}

// Admit lets policies change the object.
func (p *mutatingPolicies) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.ask(ctx, a, o)
}

// compileMutating compiles the expressions of a policy. An expression that does not compile
// is an error when it is evaluated.
func compileMutating(policy *mutating.Policy) mutating.PolicyEvaluator {
	spec := &policy.Spec
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range spec.Variables {
		variables = append(variables, &mutating.Variable{Name: v.Name, Expression: v.Expression})
	}
	c := newCompiler(spec.ParamKind != nil, variables)
	compiled := mutating.PolicyEvaluator{CompositedCompiler: &c.CompositedCompiler}
	compiled.Matcher = c.matcher(spec.MatchConditions, spec.FailurePolicy, policy.Name)
	for _, m := range spec.Mutations {
		if p := c.patcher(&m); p != nil {
			compiled.Mutators = append(compiled.Mutators, p)
		}
	}
	return compiled
}

// patcher compiles a mutation; nil if the mutation lacks the field that its type asks for.
func (c *compiler) patcher(m *v1.Mutation) patch.Patcher {
	vars := c.vars
	vars.HasPatchTypes = true
	compile := func(e plugincel.ExpressionAccessor) plugincel.MutatingEvaluator {
		return c.CompileMutatingEvaluator(e, vars, environment.StoredExpressions)
	}
	switch {
	case m.PatchType == v1.PatchTypeJSONPatch && m.JSONPatch != nil:
		return patch.NewJSONPatcher(compile(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}))
	case m.PatchType == v1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
		return patch.NewApplyConfigurationPatcher(compile(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}))
	}
	return nil
}
