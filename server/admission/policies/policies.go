// Package policies asks the ValidatingAdmissionPolicies and MutatingAdmissionPolicies in the
// store about writes.
//
// Upstream's packages compile the expressions and decide (k8s.io/apiserver/pkg/admission/
// plugin/policy). This package owns what upstream leaves to informers and to a refresh each
// second: which policies, bindings and parameters there are. It reads them from the store, so
// a policy has a say in every write after its acknowledgement. It must not know HTTP, nor the
// other admission plugins.
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
package policies

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"

	"github.com/plinth-io/plinth/server/admission/manifests"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options are what policies work with.
type Options struct {
	Store *sqlstore.Store
	// Kinds are the resources whose objects can be parameters.
	Kinds *kind.Registry
	// Client reaches the API as a user who may read namespaces.
	Client *clientrest.Config
	// Authorizer is asked by expressions.
	Authorizer authorizer.Authorizer
	// Manifests are files with further policies; nil: there are none.
	Manifests *manifests.Manifests
	// Skip tells of writes that no policy is asked about; nil: there are none.
	Skip func(context.Context) bool
}

// object is a type of policies or of bindings.
type object interface {
	comparable
	runtime.Object
}

// policies asks all policies of a type P, which bindings of type B put in force, by evaluators
// of type E. Until a binding is stored it costs a look into the store, and nothing is built.
type policies[P, B object, E generic.Evaluator] struct {
	*apiadmission.Handler
	o       Options
	of      accessors[P, B]
	source  source[P, B]
	compile func(P) E
	open    func(*matching.Matcher) generic.Dispatcher[generic.PolicyHook[P, B, E]]
	static  generic.HookSource[generic.PolicyHook[P, B, E]] // the policies in files; nil: there are none

	known atomic.Pointer[known[P, B, E]]

	mu       sync.Mutex // held while changes are learned
	compiled map[P]E    // of the policies that are in force
	asked    generic.Dispatcher[generic.PolicyHook[P, B, E]]
}

// accessors give the fields that both types of policies and bindings have.
type accessors[P, B object] struct {
	policy  func(P) generic.PolicyAccessor
	binding func(B) generic.BindingAccessor
}

// source has the stored policies and bindings. As long as an object is not changed, it is the
// same pointer.
type source[P, B object] struct {
	policyPrefix, bindingPrefix string
	policies                    func() ([]P, error) // an error says that one cannot be read
	bindings                    func() ([]B, error)
}

// known are all policies in force, each with its bindings, up to two revisions of the store
// and a generation of the kinds. Without bindings only their revision counts.
type known[P, B object, E generic.Evaluator] struct {
	policies, bindings, kinds int64
	bound                     bool // there are bindings
	hooks                     []generic.PolicyHook[P, B, E]
	bySubject                 sync.Map // of subject: the relevant ones among hooks
}

// exempt are the resources that no policy applies to: reviews.
var exempt = sets.New(exclusion.Excluded()...)

// guarded are the resources of policies themselves. No stored policy applies to them, so that a policy that refuses
// everything can be deleted.
var guarded = sets.New(
	admissionregistration.Resource("validatingadmissionpolicies"),
	admissionregistration.Resource("validatingadmissionpolicybindings"),
	admissionregistration.Resource("mutatingadmissionpolicies"),
	admissionregistration.Resource("mutatingadmissionpolicybindings"),
)

// ask asks the policies about a write.
func (p *policies[P, B, E]) ask(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	if exempt.Has(resource) || p.o.Skip != nil && p.o.Skip(ctx) {
		return nil
	}
	hooks := p.inFiles(a, o)
	if !guarded.Has(resource) {
		k, err := p.current()
		if err != nil {
			return err
		}
		stored := k.relevant(a, o, func(policy P) *v1.MatchResources { return p.of.policy(policy).GetMatchConstraints() })
		hooks = append(hooks[:len(hooks):len(hooks)], stored...)
	}
	if len(hooks) == 0 {
		return nil
	}
	return p.asked.Dispatch(ctx, a, o, hooks)
}

// current returns all policies in force.
func (p *policies[P, B, E]) current() (*known[P, B, E], error) {
	bindings, k := p.o.Store.ChangedAt(p.source.bindingPrefix), p.known.Load()
	if k != nil && k.bindings == bindings && !k.bound {
		return k, nil
	}
	now := &known[P, B, E]{bindings: bindings, policies: p.o.Store.ChangedAt(p.source.policyPrefix), kinds: p.o.Kinds.Set().Generation}
	if k != nil && k.bindings == bindings && k.policies == now.policies && k.kinds == now.kinds {
		return k, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.learn(now); err != nil {
		return nil, err
	}
	p.known.Store(now)
	return now, nil
}

// learn fills in the policies in force. The caller holds p.mu. If a policy or a binding cannot be read, because its key
// is missing or it is damaged, learn returns an error, and writes are refused: it is not known what the policy forbids.
func (p *policies[P, B, E]) learn(now *known[P, B, E]) error {
	policies, err := p.source.policies()
	if err != nil {
		return notReady(err)
	}
	bindings, err := p.source.bindings()
	if err != nil {
		return notReady(err)
	}
	if now.bound = len(bindings) > 0; !now.bound {
		p.compiled = nil
		return nil
	}
	if p.asked == nil {
		if err := p.build(); err != nil {
			return err
		}
	}
	now.hooks = p.hooks(policies, bindings)
	compiled := make(map[P]E, len(now.hooks))
	for _, hook := range now.hooks {
		compiled[hook.Policy] = hook.Evaluator
	}
	p.compiled = compiled
	return nil
}

// notReady is kube-apiserver's answer while it has not read all policies.
func notReady(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("not yet ready to handle request: %w", err))
}

// hooks pairs policies with their bindings, in the order of the policies' names.
func (p *policies[P, B, E]) hooks(policies []P, bindings []B) (hooks []generic.PolicyHook[P, B, E]) {
	of := map[string][]B{}
	for _, b := range bindings {
		name := p.of.binding(b).GetPolicyName().Name
		of[name] = append(of[name], b)
	}
	for _, policy := range policies {
		accessor := p.of.policy(policy)
		bound := of[accessor.GetName()]
		if len(bound) == 0 {
			continue
		}
		hook := generic.PolicyHook[P, B, E]{Policy: policy, Bindings: bound}
		if compiled, ok := p.compiled[policy]; ok {
			hook.Evaluator = compiled
		} else {
			hook.Evaluator = p.compile(policy)
		}
		if kind := accessor.GetParamKind(); kind != nil {
			hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = p.o.params(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
		}
		hooks = append(hooks, hook)
	}
	return hooks
}

// build makes what asks the policies.
func (p *policies[P, B, E]) build() error {
	client, err := kubernetes.NewForConfig(p.o.Client)
	if err != nil {
		return err
	}
	namespaces := corelisters.NewNamespaceLister(lister.New[corev1.Namespace](p.o.Store, lister.NamespacePrefix))
	p.asked = p.open(matching.NewMatcher(namespaces, client))
	return nil
}

// UpstreamMetrics are upstream's counters and latencies of policies and of their match conditions, and those of policies and
// webhooks in files.
// They count all servers in the process.
var UpstreamMetrics = []string{
	"apiserver_validating_admission_policy_check_total", "apiserver_validating_admission_policy_check_duration_seconds",
	"apiserver_mutating_admission_policy_check_total", "apiserver_mutating_admission_policy_check_duration_seconds",
	"apiserver_admission_match_condition_evaluation_errors_total", "apiserver_admission_match_condition_evaluation_seconds",
	"apiserver_admission_match_condition_exclusions_total",
	"apiserver_manifest_admission_config_controller_automatic_reloads_total",
	"apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_manifest_admission_config_controller_last_config_info",
}
