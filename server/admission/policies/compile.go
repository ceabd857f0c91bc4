package policies

import (
	"sync"

	v1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compiler compiles the expressions of one policy, all of which can use its variables.
type compiler struct {
	plugincel.CompositedCompiler
	vars plugincel.OptionalVariableDeclarations // that expressions can use besides those of the policy
}

// shared has the environments of all policies without variables, because making them takes tens of milliseconds.
// Programs do not change them when they run.
var shared = sync.OnceValue(newEnvironments)

func newEnvironments() *plugincel.CompositedCompiler {
	c, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		panic(err) // the environments depend on nothing: every test would fail
	}
	return c
}

// newCompiler returns a compiler of expressions that can use variables. These are part of the type of
// "variables" in its environments, so a policy that has variables has environments of its own.
func newCompiler(params bool, variables []plugincel.NamedExpressionAccessor) *compiler {
	vars := plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
	if len(variables) == 0 {
		return &compiler{*shared(), vars}
	}
	c := &compiler{*newEnvironments(), vars}
	c.CompileAndStoreVariables(variables, vars, environment.StoredExpressions)
	return c
}

// condition compiles expressions that can use everything.
func (c *compiler) condition(expressions []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
	return c.CompileCondition(expressions, c.vars, environment.StoredExpressions)
}

// message compiles messages, which cannot ask the authorizer.
func (c *compiler) message(expressions []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
	vars := c.vars
	vars.HasAuthorizer = false
	return c.CompileCondition(expressions, vars, environment.StoredExpressions)
}

// matcher compiles match conditions; nil if there are none. The kind and type are those in
// upstream's metrics.
func (c *compiler) matcher(conditions []v1.MatchCondition, onFailure *v1.FailurePolicyType, policy string) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	var expressions []plugincel.ExpressionAccessor
	for i := range conditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&conditions[i]))
	}
	return matchconditions.NewMatcher(c.condition(expressions), onFailure, "policy", "validate", policy)
}
