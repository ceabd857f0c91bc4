package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// EnsurePolicy creates upstream's bootstrap roles and bindings, and adds what is missing to those that exist,
// unless their annotation rbac.authorization.kubernetes.io/autoupdate is "false". It compares them with the
// store, and writes all changes at the same time, so that they share a few commits.
func (c *Cluster) EnsurePolicy(ctx context.Context) error {
	p := policy{c.clients, c.config.Store}
	if err := ifServed(p.migrate(ctx)); err != nil {
		return fmt.Errorf("bootstrap roles: %w", err)
	}
	var group errgroup.Group // without a context: one failure must not cancel the other writes
	for _, reconcile := range p.all(ctx) {
		group.Go(func() error { return ifServed(retry.OnError(retry.DefaultBackoff, isTransient, reconcile)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("bootstrap roles: %w", err)
	}
	c.policyReady.Store(true)
	return nil
}

// PolicyReady reports whether EnsurePolicy has succeeded. Upstream's check poststarthook/rbac/bootstrap-roles
// is the same.
func (c *Cluster) PolicyReady() bool { return c.policyReady.Load() }

// ownRoles are the roles for plinth's own resources. Whoever may view a namespace may also read its history,
// as far as the rights on each object allow.
func ownRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "plinth:aggregate-to-view",
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults", "rbac.authorization.k8s.io/aggregate-to-view": "true"},
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"history.plinth.io"}, Resources: []string{"changes", "versions"}, Verbs: []string{"get", "list", "watch"},
		}},
	}}
}

// ownBindings give plinth its own rights: a kubelet asks the API what its caller, which is plinth, may do.
func ownBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "plinth:kubelet-client",
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kubelet-api-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.KubeletClientName}},
	}}
}

// StatusPath is the path of a server's status. Whoever may read its metrics may also read this path.
const StatusPath = "/plinth/status"

// clusterRolesOfUpstream returns upstream's roles, with the right to read StatusPath added to the monitoring
// role.
func clusterRolesOfUpstream() []rbacv1.ClusterRole {
	roles := authz.BootstrapClusterRoles()
	for i := range roles {
		if roles[i].Name == user.MonitoringGroup {
			roles[i].Rules = append(roles[i].Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{StatusPath}})
		}
	}
	return roles
}

// retryPolicy is the pause before EnsurePolicy is tried again.
const retryPolicy = 5 * time.Second

// keepTryingPolicy calls EnsurePolicy until it succeeds, so that for example a full disk at the start does
// not leave the server without the roles of its release.
func (c *Cluster) keepTryingPolicy(ctx context.Context) {
	for !c.PolicyReady() && sleep.For(ctx, retryPolicy) == nil {
		if err := c.EnsurePolicy(ctx); err != nil {
			c.config.Logger.Debug("bootstrap roles could not be brought up to date; it is tried again", "err", err)
		}
	}
}

// isTransient reports whether the same request may succeed later.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err)
}

// policy reconciles roles and bindings with upstream's.
type policy struct {
	*clients
	store *sqlstore.Store
}

// all returns one function for each role and binding.
func (p policy) all(ctx context.Context) (each []func() error) {
	role := func(expected reconciliation.RuleOwner, existing reconciliation.RuleOwnerModifier) {
		each = append(each, func() error {
			_, err := (&reconciliation.ReconcileRoleOptions{Role: expected, Client: existing, Confirm: true}).Run()
			return err
		})
	}
	binding := func(expected reconciliation.RoleBinding, existing reconciliation.RoleBindingModifier) {
		each = append(each, func() error {
			_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: expected, Client: existing, Confirm: true}).Run()
			return err
		})
	}
	for _, r := range slices.Concat(clusterRolesOfUpstream(), bootstrappolicy.ControllerRoles(), ownRoles()) {
		role(reconciliation.ClusterRoleRuleOwner{ClusterRole: &r}, clusterRoles{reconciliation.ClusterRoleModifier{Client: p.rbac.ClusterRoles()}, p.store})
	}
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings(), ownBindings()) {
		binding(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &b}, clusterRoleBindings{reconciliation.ClusterRoleBindingClientAdapter{Client: p.rbac.ClusterRoleBindings()}, p.store})
	}
	for _, list := range bootstrappolicy.NamespaceRoles() {
		for _, r := range list {
			role(reconciliation.RoleRuleOwner{Role: &r}, roles{reconciliation.RoleModifier{Client: p.rbac, NamespaceClient: p.core.Namespaces()}, p.store})
		}
	}
	for _, list := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range list {
			binding(reconciliation.RoleBindingAdapter{RoleBinding: &b}, roleBindings{reconciliation.RoleBindingClientAdapter{Client: p.rbac, NamespaceClient: p.core.Namespaces()}, p.store})
		}
	}
	return each
}

// The types below are upstream's clients, except that they read from the store.

type clusterRoles struct {
	reconciliation.ClusterRoleModifier
	store *sqlstore.Store
}

func (c clusterRoles) Get(_, name string) (reconciliation.RuleOwner, error) {
	role, err := existing[rbacv1.ClusterRole](c.store, "clusterroles", "", name)
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, err
}

type clusterRoleBindings struct {
	reconciliation.ClusterRoleBindingClientAdapter
	store *sqlstore.Store
}

func (c clusterRoleBindings) Get(_, name string) (reconciliation.RoleBinding, error) {
	binding, err := existing[rbacv1.ClusterRoleBinding](c.store, "clusterrolebindings", "", name)
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, err
}

type roles struct {
	reconciliation.RoleModifier
	store *sqlstore.Store
}

func (r roles) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	role, err := existing[rbacv1.Role](r.store, "roles", namespace, name)
	return reconciliation.RoleRuleOwner{Role: role}, err
}

type roleBindings struct {
	reconciliation.RoleBindingClientAdapter
	store *sqlstore.Store
}

func (r roleBindings) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	binding, err := existing[rbacv1.RoleBinding](r.store, "rolebindings", namespace, name)
	return reconciliation.RoleBindingAdapter{RoleBinding: binding}, err
}

// existing returns a copy of an object in the store.
func existing[T any](store *sqlstore.Store, resource, namespace, name string) (*T, error) {
	e := store.Get(object.Key(object.Prefix(rbacv1.GroupName, resource), namespace, name))
	if e == nil {
		return nil, apierrors.NewNotFound(rbacv1.Resource(resource), name)
	}
	return lister.DecodeAnew[T](e)
}

// migrate copies the contents of roles and bindings from before Kubernetes 1.9 and 1.14 to their present
// names (upstream: registry/rbac/rest, primeAggregatedClusterRoles and primeSplitClusterRoleBindings).
func (p policy) migrate(ctx context.Context) error {
	for before, today := range bootstrappolicy.ClusterRolesToAggregate() {
		role, err := existing[rbacv1.ClusterRole](p.store, "clusterroles", "", before)
		if err != nil || role.AggregationRule != nil || p.has("clusterroles", today) {
			continue
		}
		role.Name, role.ResourceVersion = today, ""
		if _, err := p.rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for before, today := range bootstrappolicy.ClusterRoleBindingsToSplit() {
		binding, err := existing[rbacv1.ClusterRoleBinding](p.store, "clusterrolebindings", "", before)
		if err != nil || p.has("clusterrolebindings", today.Name) {
			continue
		}
		today.Subjects, today.Labels, today.Annotations = binding.Subjects, binding.Labels, binding.Annotations
		if _, err := p.rbac.ClusterRoleBindings().Create(ctx, &today, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (p policy) has(resource, name string) bool {
	return p.store.Get(object.Prefix(rbacv1.GroupName, resource)+name) != nil
}
