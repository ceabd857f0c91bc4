package authz

import (
	"cmp"
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// asked is a context with the user whose bindings upstream lists, because upstream's listers have no parameter for it.
type asked struct {
	context.Context
	who user.Info
}

func about(ctx context.Context, who user.Info) context.Context { return &asked{ctx, who} }

// bound lists the bindings that may apply to the user of a context. It implements upstream's
// validation.RoleBindingLister and validation.ClusterRoleBindingLister.
type bound struct {
	cluster    *bindings[rbacv1.ClusterRoleBinding]
	namespaced *bindings[rbacv1.RoleBinding]
}

func newBound(store *sqlstore.Store) *bound {
	return &bound{
		cluster:    newBindings(store, clusterRoleBindingPrefix, func(b *rbacv1.ClusterRoleBinding) []rbacv1.Subject { return b.Subjects }),
		namespaced: newBindings(store, roleBindingPrefix, func(b *rbacv1.RoleBinding) []rbacv1.Subject { return b.Subjects }),
	}
}

func (b *bound) ListClusterRoleBindings(ctx context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return b.cluster.of(ctx.(*asked).who, ""), nil
}

func (b *bound) ListRoleBindings(ctx context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return b.namespaced.of(ctx.(*asked).who, namespace), nil
}

// subject is a user or a group that a binding of a namespace names.
type subject struct {
	namespace string // of the binding; empty for cluster role bindings
	group     bool
	name      string
}

// binding is a RoleBinding or ClusterRoleBinding with its subjects, without duplicates.
type binding[T any] struct {
	key      string
	object   *T
	subjects []subject
}

// bindings finds bindings by their subjects.
type bindings[T any] struct {
	*lister.Derived
	prefix   string
	subjects func(*T) []rbacv1.Subject

	// Guarded by Derived.
	byKey     map[string]*binding[T]
	bySubject map[subject][]*binding[T]
}

func newBindings[T any](store *sqlstore.Store, prefix string, subjects func(*T) []rbacv1.Subject) *bindings[T] {
	b := &bindings[T]{prefix: prefix, subjects: subjects}
	b.Derived = lister.NewDerived(store, prefix, b.reset, b.apply)
	return b
}

func (b *bindings[T]) reset() {
	b.byKey, b.bySubject = map[string]*binding[T]{}, map[subject][]*binding[T]{}
}

// apply takes a change of a binding in. A binding that cannot be decoded binds nobody.
func (b *bindings[T]) apply(ev *sqlstore.Event) {
	b.remove(ev.Entry.Key)
	if ev.Type == sqlstore.Delete {
		return
	}
	if object, err := lister.Decode[T](ev.Entry); err == nil {
		b.add(&binding[T]{ev.Entry.Key, object, b.subjectsOf(ev.Entry.Key, object)})
	}
}

func (b *bindings[T]) add(one *binding[T]) {
	b.byKey[one.key] = one
	for _, s := range one.subjects {
		b.bySubject[s] = append(b.bySubject[s], one)
	}
}

func (b *bindings[T]) remove(key string) {
	one := b.byKey[key]
	if one == nil {
		return
	}
	delete(b.byKey, key)
	for _, s := range one.subjects {
		rest := slices.DeleteFunc(b.bySubject[s], func(other *binding[T]) bool { return other == one })
		if b.bySubject[s] = rest; len(rest) == 0 {
			delete(b.bySubject, s)
		}
	}
}

// subjectsOf returns the users and groups that a binding applies to, as upstream compares them
// (registry/rbac/validation.appliesToUser). A service account is the user of its name.
func (b *bindings[T]) subjectsOf(key string, object *T) (all []subject) {
	namespace, _, namespaced := strings.Cut(key[len(b.prefix):], "/")
	if !namespaced {
		namespace = ""
	}
	for _, s := range b.subjects(object) {
		found := subject{namespace: namespace, name: s.Name}
		switch s.Kind {
		case rbacv1.GroupKind:
			found.group = true
		case rbacv1.ServiceAccountKind:
			found.name = serviceaccount.MakeUsername(cmp.Or(s.Namespace, namespace), s.Name)
		case rbacv1.UserKind:
		default:
			continue
		}
		if !slices.Contains(all, found) {
			all = append(all, found)
		}
	}
	return all
}

// of returns the bindings of a namespace that name the user or one of its groups, each once, in
// the order of their names.
func (b *bindings[T]) of(who user.Info, namespace string) []*T {
	if who == nil {
		return nil
	}
	b.RLock()
	defer b.RUnlock()
	found := append(make([]*binding[T], 0, 8), b.bySubject[subject{namespace, false, who.GetName()}]...)
	for _, group := range who.GetGroups() {
		found = append(found, b.bySubject[subject{namespace, true, group}]...)
	}
	slices.SortFunc(found, func(x, y *binding[T]) int { return strings.Compare(x.key, y.key) })
	found = slices.Compact(found)
	objects := make([]*T, len(found))
	for i, one := range found {
		objects[i] = one.object
	}
	return objects
}
