package ui

import (
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rightsPage is the page of who may do what: what somebody may do, or who may do something.
type rightsPage struct {
	*visit
	// The question that was asked.
	Kind, Who, Groups    string // User, Group or ServiceAccount, its name, and more groups of a user
	Verb, What, Name     string
	Asked                bool // who may do something
	Self                 bool // about the visitor
	Kinds, Verbs         []string
	Resources            []string
	NonResource, Cluster bool // what is asked for is a path, or in no namespace

	// The answer.
	Unread   []unreadRights
	Blind    bool // no binding can be read
	Master   bool // of the group that may do everything
	InGroups []string
	Grants   []grant
	Own      *ownRules
	Holders  []holder
	Verdict  *ownVerdict
	Fault    *explained
}

// unreadRights is a kind of RBAC objects that the visitor may not list.
type unreadRights struct{ What, Reason string }

// ownRules are the rules that the server says the visitor has in a namespace.
type ownRules struct {
	Namespace  string
	Rules      []ruleRow
	Incomplete string
}

// ownVerdict is whether the server says that the visitor may do what was asked for.
type ownVerdict struct {
	Allowed bool
	Reason  string
}

// subjectKinds are the kinds of subjects of bindings.
var subjectKinds = []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}

// commonVerbs are suggested.
var commonVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "approve", "*"}

// rights answers what somebody may do, the visitor if nobody is named, or who may do something.
func (v *visit) rights() error {
	b := &rightsPage{visit: v, Kind: v.param("kind"), Who: strings.TrimSpace(v.param("who")), Groups: v.param("groups"),
		Verb: strings.TrimSpace(v.param("verb")), What: strings.TrimSpace(v.param("what")), Name: strings.TrimSpace(v.param("name")),
		Kinds: subjectKinds, Verbs: commonVerbs}
	kinds, _ := v.conn.served()
	for _, k := range kinds {
		b.Resources = append(b.Resources, k.Name())
	}
	b.Asked = b.Verb != "" && b.What != ""
	b.Self = !b.Asked && b.Who == ""
	p := page{Title: "Rights", Nav: "rights", Body: b}
	if err := b.answer(); err != nil {
		e := explain(err)
		b.Fault, p.Code = &e, e.Code
	}
	return v.show("rights.html", p)
}

func (b *rightsPage) answer() error {
	if !b.at.IsNow() {
		return problem(http.StatusBadRequest, "Rights are shown as they are now. Go back to now; the timelines of roles and bindings show what was.")
	}
	known := &rights{visit: b.visit}
	known.read()
	b.Unread, b.Blind = known.unread, known.blind
	if b.Asked {
		return b.answerWho(known)
	}
	who, err := b.person()
	if err != nil {
		return err
	}
	b.InGroups = who.GetGroups()
	for _, group := range who.GetGroups() {
		b.Master = b.Master || group == user.SystemPrivilegedGroup
	}
	if b.Self {
		if b.Own, err = b.askOwnRules(); err != nil {
			return err
		}
	}
	b.Grants = known.grantsOf(who)
	return nil
}

// person is the one that the question is about, with the groups that he is in for certain.
func (b *rightsPage) person() (user.Info, error) {
	if b.Self {
		var review authenticationv1.SelfSubjectReview
		in := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
		err := b.post(in, &review, "apis", "authentication.k8s.io", "v1", "selfsubjectreviews")
		b.Who, b.Kind = review.Status.UserInfo.Username, rbacv1.UserKind
		return &user.DefaultInfo{Name: b.Who, Groups: review.Status.UserInfo.Groups}, err
	}
	switch b.Kind {
	case rbacv1.GroupKind:
		return &user.DefaultInfo{Groups: []string{b.Who}}, nil
	case rbacv1.ServiceAccountKind:
		namespace, name, ok := strings.Cut(b.Who, "/")
		if !ok {
			namespace, name = b.namespace, b.Who
		}
		if namespace == "" || name == "" {
			return nil, problem(http.StatusBadRequest, "Write NAMESPACE/NAME for a service account.")
		}
		b.Who = namespace + "/" + name
		return serviceAccount(namespace, name), nil
	}
	b.Kind = rbacv1.UserKind
	if namespace, name, err := serviceaccount.SplitUsername(b.Who); err == nil {
		return serviceAccount(namespace, name), nil
	}
	groups := []string{user.AllAuthenticated}
	for _, g := range strings.Split(b.Groups, ",") {
		if g = strings.TrimSpace(g); g != "" {
			groups = append(groups, g)
		}
	}
	return &user.DefaultInfo{Name: b.Who, Groups: groups}, nil
}

func serviceAccount(namespace, name string) user.Info {
	groups := append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name), Groups: groups}
}

// askOwnRules asks the server what the visitor may do in the namespace of the page.
func (b *rightsPage) askOwnRules() (*ownRules, error) {
	own := &ownRules{Namespace: b.namespace}
	if own.Namespace == "" {
		own.Namespace = metav1.NamespaceDefault
	}
	in := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: own.Namespace},
	}
	var out authorizationv1.SelfSubjectRulesReview
	if err := b.post(in, &out, "apis", "authorization.k8s.io", "v1", "selfsubjectrulesreviews"); err != nil {
		return nil, err
	}
	for _, r := range out.Status.ResourceRules {
		own.Rules = append(own.Rules, ruleRowOf(rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames}))
	}
	for _, r := range out.Status.NonResourceRules {
		own.Rules = append(own.Rules, ruleRowOf(rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs}))
	}
	if own.Incomplete = out.Status.EvaluationError; out.Status.Incomplete && own.Incomplete == "" {
		own.Incomplete = "The server says that there may be more."
	}
	return own, nil
}

// answerWho finds who may do something, and whether the visitor may.
func (b *rightsPage) answerWho(known *rights) error {
	attributes, namespaced, err := b.attributes()
	if err != nil {
		return err
	}
	b.Cluster = !namespaced
	in := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}}
	if b.NonResource {
		in.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: attributes.Path, Verb: attributes.Verb}
	} else {
		in.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: attributes.Verb, Group: attributes.APIGroup, Resource: attributes.Resource,
			Subresource: attributes.Subresource, Namespace: attributes.Namespace, Name: attributes.Name}
	}
	var out authorizationv1.SelfSubjectAccessReview
	if err := b.post(in, &out, "apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"); err != nil {
		return err
	}
	b.Verdict = &ownVerdict{out.Status.Allowed, out.Status.Reason}
	b.Holders = known.holders(attributes, namespaced)
	return nil
}

// attributes are those of the request that the question is about: deployments, pods/log, or a path such as /metrics.
func (b *rightsPage) attributes() (a authorizer.AttributesRecord, namespaced bool, err error) {
	a = authorizer.AttributesRecord{Verb: b.Verb, Name: b.Name}
	if strings.HasPrefix(b.What, "/") {
		a.Path, b.NonResource = b.What, true
		return a, false, nil
	}
	resource, subresource, _ := strings.Cut(b.What, "/")
	a.Subresource, a.ResourceRequest = subresource, true
	if resource == "*" {
		a.APIGroup, a.Resource, a.Namespace = "*", "*", b.namespace
		return a, true, nil
	}
	kind, err := b.past.Kinds.Find(resource)
	if err != nil {
		return a, false, err
	}
	a.APIGroup, a.APIVersion, a.Resource = kind.Resource.Group, kind.Resource.Version, kind.Resource.Resource
	if kind.Namespaced {
		a.Namespace = b.namespace
	}
	return a, kind.Namespaced, nil
}
