package ui

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// rights are the RBAC objects that the visitor may list.
type rights struct {
	*visit
	bindings []binding
	roles    map[roleKey]*[]rbacv1.PolicyRule
	unread   []unreadRights
	blind    bool
}

// binding is a RoleBinding, or a ClusterRoleBinding if it has no namespace.
type binding struct {
	namespace, name string
	role            rbacv1.RoleRef
	subjects        []rbacv1.Subject
}

// roleKey names a Role, or a ClusterRole if it has no namespace.
type roleKey struct{ namespace, name string }

const (
	roleResource               = "roles.rbac.authorization.k8s.io"
	roleBindingResource        = "rolebindings.rbac.authorization.k8s.io"
	clusterRoleResource        = "clusterroles.rbac.authorization.k8s.io"
	clusterRoleBindingResource = "clusterrolebindings.rbac.authorization.k8s.io"
)

// read lists the RBAC objects of the namespace of the page, or of all, and what of them the visitor may not list.
func (k *rights) read() {
	k.roles = map[roleKey]*[]rbacv1.PolicyRule{}
	var roles rbacv1.RoleList
	var clusterRoles rbacv1.ClusterRoleList
	var bindings rbacv1.RoleBindingList
	var clusterBindings rbacv1.ClusterRoleBindingList
	unread := 0
	read := func(out any, resource, namespace string) bool {
		path := []string{"apis", rbacv1.GroupName, "v1"}
		if namespace != "" {
			path = append(path, "namespaces", namespace)
		}
		err := k.get(out, nil, append(path, resource)...)
		if err != nil {
			k.unread = append(k.unread, unreadRights{resource, explain(err).Text})
		}
		return err == nil
	}
	read(&clusterRoles, "clusterroles", "")
	read(&roles, "roles", k.namespace)
	if !read(&clusterBindings, "clusterrolebindings", "") {
		unread++
	}
	if !read(&bindings, "rolebindings", k.namespace) {
		unread++
	}
	k.blind = unread == 2
	for i := range clusterRoles.Items {
		k.roles[roleKey{"", clusterRoles.Items[i].Name}] = &clusterRoles.Items[i].Rules
	}
	for i := range roles.Items {
		k.roles[roleKey{roles.Items[i].Namespace, roles.Items[i].Name}] = &roles.Items[i].Rules
	}
	for _, b := range clusterBindings.Items {
		k.bindings = append(k.bindings, binding{"", b.Name, b.RoleRef, b.Subjects})
	}
	for _, b := range bindings.Items {
		k.bindings = append(k.bindings, binding{b.Namespace, b.Name, b.RoleRef, b.Subjects})
	}
}

// rules are those of the role of a binding; nil if it cannot be read or is not there.
func (k *rights) rules(b binding) *[]rbacv1.PolicyRule {
	if b.role.Kind == "ClusterRole" {
		return k.roles[roleKey{"", b.role.Name}]
	}
	return k.roles[roleKey{b.namespace, b.role.Name}]
}

// given says by what binding and what role a right is given.
type given struct {
	Binding, BindingLink string
	Role, RoleKind       string
	RoleLink             string
	Where                string // a namespace; empty: everywhere
}

func (k *rights) givenBy(b binding) given {
	g := given{Binding: b.name, Role: b.role.Name, RoleKind: b.role.Kind, Where: b.namespace}
	if b.namespace == "" {
		g.BindingLink = k.objectLink(clusterRoleBindingResource, "", b.name, "")
	} else {
		g.BindingLink = k.objectLink(roleBindingResource, b.namespace, b.name, "")
	}
	if b.role.Kind == "ClusterRole" {
		g.RoleLink = k.objectLink(clusterRoleResource, "", b.role.Name, "")
	} else {
		g.RoleLink = k.objectLink(roleResource, b.namespace, b.role.Name, "")
	}
	return g
}

// grant is a binding that gives somebody rights.
type grant struct {
	given
	Via     string // the subject of the binding that he is
	Rules   []ruleRow
	Unknown bool // the role cannot be read, or is not there
}

// ruleRow is a rule as people read it.
type ruleRow struct{ Verbs, What, Names string }

// grantsOf returns the bindings that are for somebody, those for everywhere first.
func (k *rights) grantsOf(who user.Info) (all []grant) {
	for _, b := range k.bindings {
		i := slices.IndexFunc(b.subjects, func(s rbacv1.Subject) bool { return isSubject(who, s, b.namespace) })
		if i < 0 {
			continue
		}
		g := grant{given: k.givenBy(b), Via: subjectText(b.subjects[i], b.namespace)}
		rules := k.rules(b)
		if g.Unknown = rules == nil; !g.Unknown {
			for _, r := range *rules {
				g.Rules = append(g.Rules, ruleRowOf(r))
			}
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b grant) int {
		return cmp.Or(strings.Compare(a.Where, b.Where), strings.Compare(a.Binding, b.Binding))
	})
	return all
}

// isSubject tells whether a subject of a binding is somebody.
func isSubject(who user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return who.GetName() != "" && who.GetName() == s.Name
	case rbacv1.GroupKind:
		return slices.Contains(who.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		return serviceaccount.MatchesUsername(cmp.Or(s.Namespace, namespace), s.Name, who.GetName())
	}
	return false
}

func subjectText(s rbacv1.Subject, namespace string) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Kind + " " + cmp.Or(s.Namespace, namespace) + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

func ruleRowOf(r rbacv1.PolicyRule) ruleRow {
	row := ruleRow{Verbs: strings.Join(r.Verbs, ", "), Names: strings.Join(r.ResourceNames, ", ")}
	if slices.Contains(r.Verbs, rbacv1.VerbAll) {
		row.Verbs = "all verbs"
	}
	var what []string
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			what = append(what, resourceText(group, resource))
		}
	}
	row.What = strings.Join(append(what, r.NonResourceURLs...), ", ")
	return row
}

// resourceText writes a resource of a rule: deployments.apps, pods/log.
func resourceText(group, resource string) string {
	switch {
	case group == rbacv1.APIGroupAll && resource == rbacv1.ResourceAll:
		return "everything"
	case resource == rbacv1.ResourceAll && group == "":
		return "everything of the core group"
	case resource == rbacv1.ResourceAll:
		return "everything of " + group
	case group == rbacv1.APIGroupAll:
		return resource + " of any group"
	case group == "":
		return resource
	}
	name, sub, ok := strings.Cut(resource, "/")
	if ok {
		return name + "." + group + "/" + sub
	}
	return name + "." + group
}

// holder is somebody who may do something.
type holder struct {
	given
	Kind, Name string
	Link       string // to what else he may do
	Only       string // names of objects for which he may
}

// holders returns who may do something, by the bindings of the cluster, and in the namespace or in each one.
func (k *rights) holders(a authorizer.AttributesRecord, namespaced bool) (all []holder) {
	for _, b := range k.bindings {
		if b.namespace != "" && !namespaced {
			continue // no RoleBinding is about what is in no namespace
		}
		rules := k.rules(b)
		if rules == nil {
			continue
		}
		if b.namespace != "" {
			a.Namespace = b.namespace
		}
		ok, only := allowed(a, *rules)
		if !ok {
			continue
		}
		for _, s := range b.subjects {
			h := holder{given: k.givenBy(b), Kind: s.Kind, Name: s.Name, Only: only}
			if s.Kind == rbacv1.ServiceAccountKind {
				h.Name = cmp.Or(s.Namespace, b.namespace) + "/" + s.Name
			}
			h.Link = k.link("rights", "kind", h.Kind, "who", h.Name)
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b holder) int {
		return cmp.Or(slices.Index(subjectKinds, a.Kind)-slices.Index(subjectKinds, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Where, b.Where))
	})
	return all
}

// allowed tells whether rules allow a request; if they do so only for objects of some names, and no name is asked for,
// for which.
func allowed(a authorizer.AttributesRecord, rules []rbacv1.PolicyRule) (ok bool, only string) {
	if rbac.RulesAllow(a, rules...) {
		return true, ""
	}
	if a.Name != "" || !a.ResourceRequest {
		return false, ""
	}
	var names []string
	for _, r := range rules {
		for _, name := range r.ResourceNames {
			a.Name = name
			if rbac.RulesAllow(a, r) {
				names = append(names, name)
			}
		}
	}
	return len(names) > 0, strings.Join(names, ", ")
}
