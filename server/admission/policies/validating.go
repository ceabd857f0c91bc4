package policies

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/manifest/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/admission/plugin/policy/manifest/loader"

	"github.com/plinth-io/plinth/server/lister"
	storeobject "github.com/plinth-io/plinth/sqlstore/object"
)

// NewValidating returns the plugin that asks ValidatingAdmissionPolicies. It decides as
// upstream's ValidatingAdmissionPolicy does.
func NewValidating(o Options) (apiadmission.ValidationInterface, error) {
	s := source[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding]{
		policyPrefix:  storeobject.Prefix(v1.GroupName, "validatingadmissionpolicies"),
		bindingPrefix: storeobject.Prefix(v1.GroupName, "validatingadmissionpolicybindings"),
	}
	s.policies = func() ([]*v1.ValidatingAdmissionPolicy, error) {
		return lister.Everything[v1.ValidatingAdmissionPolicy](o.Store, s.policyPrefix)
	}
	s.bindings = func() ([]*v1.ValidatingAdmissionPolicyBinding, error) {
		return lister.Everything[v1.ValidatingAdmissionPolicyBinding](o.Store, s.bindingPrefix)
	}
	p := &validatingPolicies{policies[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding, validating.Validator]{
		Handler: apiadmission.NewHandler(apiadmission.Connect, apiadmission.Create, apiadmission.Delete, apiadmission.Update),
		o:       o,
		source:  s,
		of: accessors[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding]{
			policy: validating.NewValidatingAdmissionPolicyAccessor, binding: validating.NewValidatingAdmissionPolicyBindingAccessor,
		},
		compile: newLateValidator,
		open: func(m *matching.Matcher) generic.Dispatcher[validating.PolicyHook] {
			return validating.NewDispatcher(o.Authorizer, generic.NewPolicyMatcher(m))
		},
	}}
	return p, p.follow(static[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding, validating.Validator]{
		plugin: metrics.VAPManifestType,
		load: func(dir string) ([]*v1.ValidatingAdmissionPolicy, []*v1.ValidatingAdmissionPolicyBinding, string, error) {
			found, err := loader.LoadValidatingManifestsFromDirectory(dir)
			if err != nil {
				return nil, nil, "", err
			}
			return found.Policies, found.Bindings, found.Hash, nil
		},
		compile: func(policy *v1.ValidatingAdmissionPolicy) (validating.Validator, error) {
			validator := newLateValidator(policy)
			return validator, validator.CompileError()
		},
	})
}

type validatingPolicies struct {
	policies[*v1.ValidatingAdmissionPolicy, *v1.ValidatingAdmissionPolicyBinding, validating.Validator]
}

// Validate refuses what a policy refuses.
func (p *validatingPolicies) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.ask(ctx, a, o)
}

// lateValidator compiles a policy when the first write matches it: to compile takes a moment.
type lateValidator struct {
	validator func() validating.Validator
	made      atomic.Bool
}

func newLateValidator(policy *v1.ValidatingAdmissionPolicy) validating.Validator {
	l := &lateValidator{}
	l.validator = sync.OnceValue(func() validating.Validator {
		l.made.Store(true)
		return compileValidating(policy)
	})
	return l
}

// Validate implements validating.Validator. It evaluates nothing once the time of the request
// is over: an expression may take most of a second.
func (l *lateValidator) Validate(ctx context.Context, resource schema.GroupVersionResource, a *apiadmission.VersionedAttributes, param runtime.Object, namespace *corev1.Namespace, budget int64, authz authorizer.UnconditionalAuthorizer) validating.ValidateResult {
	if err := ctx.Err(); err != nil {
		return validating.ValidateResult{Decisions: []validating.PolicyDecision{{
			Action: validating.ActionDeny, Evaluation: validating.EvalError, Message: err.Error(),
		}}}
	}
	return l.validator().Validate(ctx, resource, a, param, namespace, budget, authz)
}

// CompileError implements validating.Validator.
func (l *lateValidator) CompileError() error { return l.validator().CompileError() }

// compileValidating compiles the expressions of a policy. An expression that does not compile
// is an error when it is evaluated.
func compileValidating(policy *v1.ValidatingAdmissionPolicy) validating.Validator {
	spec := &policy.Spec
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	var validations, messages, annotations []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor // nil: the message at this place is no expression
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}

	c := newCompiler(spec.ParamKind != nil, variables)
	conditions := c.matcher(spec.MatchConditions, spec.FailurePolicy, policy.Name)
	return validating.NewValidator(c.condition(validations), conditions, c.condition(annotations), c.message(messages), spec.FailurePolicy, nil)
}
