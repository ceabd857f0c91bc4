package authz

import (
	"context"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// The prefixes of the keys of RBAC's objects.
var (
	rolePrefix               = object.Prefix(rbacv1.GroupName, "roles")
	roleBindingPrefix        = object.Prefix(rbacv1.GroupName, "rolebindings")
	clusterRolePrefix        = object.Prefix(rbacv1.GroupName, "clusterroles")
	clusterRoleBindingPrefix = object.Prefix(rbacv1.GroupName, "clusterrolebindings")
)

// RBAC is upstream's authorizer on the roles and bindings in the store. For each decision upstream looks at every
// binding. Here it gets only those that name the user or one of its groups, and decides which of them apply. If a
// cached rule allows the request, upstream is not asked.
type RBAC struct {
	upstream *rbac.RBACAuthorizer
	cache    *ruleCache
}

var (
	_ authorizer.Authorizer   = &RBAC{}
	_ authorizer.RuleResolver = &RBAC{}
)

func newRBAC(store *sqlstore.Store, in *bound) *RBAC {
	roles := &rbac.RoleGetter{Lister: rbaclisters.NewRoleLister(lister.New[rbacv1.Role](store, rolePrefix))}
	clusterRoles := &rbac.ClusterRoleGetter{Lister: rbaclisters.NewClusterRoleLister(lister.New[rbacv1.ClusterRole](store, clusterRolePrefix))}
	return &RBAC{
		upstream: rbac.New(roles, in, clusterRoles, in),
		cache:    newRuleCache(store, validation.NewDefaultRuleResolver(roles, in, clusterRoles, in)),
	}
}

// Authorize implements authorizer.Authorizer.
func (r *RBAC) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx = about(ctx, a.GetUser())
	if a.GetUser() != nil {
		if reason := r.cache.allows(ctx, a); reason != "" {
			return authorizer.DecisionAllow, reason, nil
		}
	}
	return r.upstream.Authorize(ctx, a)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer: the decision of Authorize has no conditions.
func (r *RBAC) ConditionsAwareAuthorize(ctx context.Context, what authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, what))
}

// EvaluateConditions implements authorizer.Authorizer. There are no conditions to evaluate.
func (r *RBAC) EvaluateConditions(ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return r.upstream.EvaluateConditions(ctx, decision, data)
}

// RulesFor implements authorizer.RuleResolver.
func (r *RBAC) RulesFor(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return r.upstream.RulesFor(about(ctx, who), who, namespace)
}

// Resolver finds the rules that a user has and that a role has, for whoever checks that the
// author of a role or binding has all of its permissions. Its errors name a role as upstream's
// registries do.
//
// It reads the present state of the database, not what this process knows of it, so that a permission that another
// replica has just revoked cannot be granted here. Upstream reads etcd for the same reason.
type Resolver struct {
	store    *sqlstore.Store
	upstream *validation.DefaultRuleResolver
}

var _ validation.AuthorizationRuleResolver = &Resolver{}

func newResolver(store *sqlstore.Store, in *bound) *Resolver {
	roles := stored{store}
	return &Resolver{store, validation.NewDefaultRuleResolver(roles, in, roles, in)}
}

// GetRoleReferenceRules implements validation.AuthorizationRuleResolver.
func (r *Resolver) GetRoleReferenceRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if _, err := r.store.Sync(ctx); err != nil {
		return nil, err
	}
	return r.upstream.GetRoleReferenceRules(ctx, ref, namespace)
}

// RulesFor implements validation.AuthorizationRuleResolver.
func (r *Resolver) RulesFor(ctx context.Context, who user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	if _, err := r.store.Sync(ctx); err != nil {
		return nil, err
	}
	return r.upstream.RulesFor(about(ctx, who), who, namespace)
}

// VisitRulesFor implements validation.AuthorizationRuleResolver.
func (r *Resolver) VisitRulesFor(ctx context.Context, who user.Info, namespace string, visit func(source fmt.Stringer, rule *rbacv1.PolicyRule, err error) bool) {
	if _, err := r.store.Sync(ctx); err != nil {
		visit(nil, nil, err)
		return
	}
	r.upstream.VisitRulesFor(about(ctx, who), who, namespace, visit)
}

// sorting is held while upstream makes roles and rules: it sorts lists of verbs in place that all roles share, and one
// process may have several servers. A sorted list is not written to again, so the result may be read without the lock.
var sorting sync.Mutex

// BootstrapClusterRoles returns upstream's cluster roles of users and components.
func BootstrapClusterRoles() []rbacv1.ClusterRole {
	sorting.Lock()
	defer sorting.Unlock()
	return bootstrappolicy.ClusterRoles()
}

// nodeRules returns what every node may do.
func nodeRules() []rbacv1.PolicyRule {
	sorting.Lock()
	defer sorting.Unlock()
	return bootstrappolicy.NodeRules()
}
