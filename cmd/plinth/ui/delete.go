package ui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// deletePage is the page on which an object is deleted, and that of what came of it.
type deletePage struct {
	*subject
	UID, Version string
	Policy       string
	Policies     []policyChoice
	Dependents   *treeNode
	Count        int // of dependents
	Within       []withinGroup
	WithinAll    int
	Unread       []swept
	Finalizers   []string
	Done         bool // it was deleted
	Ending       bool // it goes when its finalizers are done
	Fault        *explained
}

// policyChoice is what may happen to dependents.
type policyChoice struct {
	Name metav1.DeletionPropagation
	Help string
}

var policies = []policyChoice{
	{metav1.DeletePropagationBackground, "The object goes at once, then what depends on it."},
	{metav1.DeletePropagationForeground, "What depends on it goes first, then the object."},
	{metav1.DeletePropagationOrphan, "What depends on it stays, without an owner."},
}

// withinGroup are objects of a kind that go with their namespace or their definition.
type withinGroup struct {
	Resource string
	Count    int
	Names    []string // some of them
}

const namesMost = 20

// remove shows what would go with an object, or deletes it, or says what came of that.
func (v *visit) remove() error {
	if uid := v.param("done"); uid != "" {
		return v.removed(uid)
	}
	s, err := v.presentSubject("delete")
	if err != nil {
		return err
	}
	b := &deletePage{subject: s, UID: string(s.Object.GetUID()), Version: s.Object.GetResourceVersion(), Policy: "Background", Policies: policies,
		Finalizers: s.Object.GetFinalizers(), Ending: s.Object.GetDeletionTimestamp() != nil}
	if v.r.Method == http.MethodPost {
		b.UID, b.Version, b.Policy = v.r.PostFormValue("uid"), v.r.PostFormValue("rv"), v.r.PostFormValue("policy")
		if err = b.do(); err == nil {
			s.went("delete", "done", b.UID)
			return nil
		}
	}
	if err := b.addDependents(); err != nil {
		return err
	}
	return s.showForm("delete.html", "Delete", b, &b.Fault, err)
}

// do deletes the object if it is the one, and the state of it, that was looked at.
func (b *deletePage) do() error {
	if b.UID == "" || b.Version == "" {
		return problem(http.StatusBadRequest, "The form does not say which object was looked at.")
	}
	uid, policy := types.UID(b.UID), metav1.DeletionPropagation(b.Policy)
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &b.Version}, PropagationPolicy: &policy,
	})
	if err != nil {
		return err
	}
	request := b.conn.rest.Delete().AbsPath(pathOf(b.Kind.In(b.Namespace, b.Name))...).SetHeader("Content-Type", "application/json")
	return request.Body(body).Do(b.ctx()).Error()
}

// removed shows what came of a deletion.
func (v *visit) removed(uid string) error {
	t, err := v.target()
	if err != nil {
		return err
	}
	s := &subject{visit: v, Kind: t.Kind, Resource: t.Kind.Name(), Namespace: t.Namespace, Name: t.Name, Tab: "delete", Gone: true}
	b := &deletePage{subject: s, Done: true}
	o, err := s.objectAt(past.Moment{})
	switch {
	case err == nil && string(o.GetUID()) == uid:
		s.Object, s.Gone, b.Ending, b.Finalizers = o, false, o.GetDeletionTimestamp() != nil, o.GetFinalizers()
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	return v.show("delete.html", page{Title: "Deleted " + s.Name, Nav: s.Resource, Body: b})
}

// addDependents finds what would go with the object.
func (b *deletePage) addDependents() error {
	f, err := b.family()
	if err != nil {
		return err
	}
	b.Dependents = f.node(relative{b.Kind, b.Object})
	b.Dependents.Here = true
	f.addChildren(b.Dependents, b.Object.GetUID(), map[types.UID]bool{b.Object.GetUID(): true})
	b.Count = f.shown + b.Dependents.left()
	b.Unread = f.unread
	within, err := b.past.History.Within(b.ctx(), b.Kind.In(b.Namespace, b.Name))
	if err != nil { // no history
		b.countWithin()
		return nil
	}
	b.Within, b.WithinAll = groupWithin(within), len(within)
	return nil
}

// countWithin counts what is in a namespace, or of a definition, by lists.
func (b *deletePage) countWithin() {
	var counts []insideCount
	switch b.Resource {
	case "namespaces":
		counts = b.inside()
	case definitionResource:
		kinds, _ := b.conn.served()
		for _, k := range kinds {
			if k.Name() == b.Name {
				counts = append(counts, insideCount{b.Name, k.Kind.Kind, b.conn.sweepKind(b.ctx(), k, "", 1).Total})
			}
		}
	}
	for _, c := range counts {
		b.Within = append(b.Within, withinGroup{Resource: c.Resource, Count: c.Count})
		b.WithinAll += c.Count
	}
}

// left is how many nodes below n are not shown.
func (n *treeNode) left() int {
	sum := n.More
	for _, child := range n.Children {
		sum += child.left()
	}
	return sum
}

// groupWithin sorts objects by their kinds, those with most of them first.
func groupWithin(all []historyv1.ObjectReference) (groups []withinGroup) {
	byResource := map[string]*withinGroup{}
	for _, o := range all {
		g := byResource[o.Resource]
		if g == nil {
			g = &withinGroup{Resource: o.Resource}
			byResource[o.Resource] = g
		}
		if g.Count++; len(g.Names) < namesMost {
			g.Names = append(g.Names, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
	}
	for _, g := range byResource {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b withinGroup) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Resource, b.Resource)) })
	return groups
}
