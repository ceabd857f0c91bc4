package policies

import (
	v1 "k8s.io/api/admissionregistration/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
)

// Compile compiles a policy, with or without a variable.
func Compile(variable bool) any {
	policy := &v1.ValidatingAdmissionPolicy{Spec: v1.ValidatingAdmissionPolicySpec{
		Validations: []v1.Validation{{Expression: "!has(object.data) || object.data.size() < 3"}},
	}}
	if variable {
		policy.Spec.Variables = []v1.Variable{{Name: "a", Expression: "object.data.size()"}}
	}
	return compileValidating(policy)
}

// CompileNaming compiles a mutating and a validating policy that name types.
func CompileNaming(types string) {
	compileMutating(&v1.MutatingAdmissionPolicy{Spec: v1.MutatingAdmissionPolicySpec{Mutations: []v1.Mutation{{
		PatchType: v1.PatchTypeJSONPatch, JSONPatch: &v1.JSONPatch{Expression: "[" + types + "]"},
	}}}})
	compileValidating(&v1.ValidatingAdmissionPolicy{Spec: v1.ValidatingAdmissionPolicySpec{
		Validations: []v1.Validation{{Expression: "[" + types + "].size() > 0"}},
	}})
}

// Built tells whether a plugin is ready to ask policies.
func Built(p apiadmission.ValidationInterface) bool { return p.(*validatingPolicies).asked != nil }

// CompiledCount is how many policies of a plugin have been compiled.
func CompiledCount(p apiadmission.ValidationInterface) (n int) {
	for _, v := range p.(*validatingPolicies).compiled {
		if v.(*lateValidator).made.Load() {
			n++
		}
	}
	return n
}
