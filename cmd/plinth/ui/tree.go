package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// treePage is the page of an object's owners, dependents and events.
type treePage struct {
	*subject
	Roots  []*treeNode
	Unread []swept // kinds in which dependents may be that are not shown
	Inside []insideCount
	Events eventsPart
}

// treeNode is an object in the tree.
type treeNode struct {
	Resource, Kind, Namespace, Name string
	State                           string
	Good                            string // yes, no, or empty
	Here                            bool   // the object of the page
	Missing                         bool   // named as an owner, and not there
	Shared                          bool   // it has other owners too, so it stays when one of them goes
	Children                        []*treeNode
	More                            int // children that are not shown
	Link                            string
}

// insideCount is how many objects of a kind a namespace has.
type insideCount struct {
	Resource, Kind string
	Count          int
}

const (
	treeMost     = 500 // objects in a tree
	childrenMost = 100 // of one object
)

// tree shows what an object belongs to, what belongs to it, and what happened to it.
func (s *subject) tree() error {
	b := &treePage{subject: s}
	f, err := s.family()
	if err != nil {
		return err
	}
	b.Unread = f.unread
	b.Roots = f.roots()
	b.addStates()
	if s.Resource == "namespaces" {
		b.Inside = s.inside()
	}
	b.Events = s.events()
	return s.show("tree.html", page{Title: s.Name + " · owners and events", Nav: s.Resource, Body: b})
}

// relative is an object that may be in a tree.
type relative struct {
	kind past.Kind
	metav1.Object
}

// family is what is known of the objects around one.
type family struct {
	of     *subject
	byUID  map[types.UID]relative
	below  map[types.UID][]relative // dependents by their owners
	unread []swept
	shown  int
}

// family reads the metadata of all objects that may depend on one: those of its namespace, or all.
func (s *subject) family() (*family, error) {
	f := &family{of: s, byUID: map[types.UID]relative{}, below: map[types.UID][]relative{}}
	if !s.at.IsNow() {
		return f, f.addPast()
	}
	kinds, err := s.conn.sweepable(s.Namespace != "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx(), 20*time.Second)
	defer cancel()
	for _, one := range s.conn.sweep(ctx, kinds, s.Namespace, sweepMost) {
		for i := range one.Items {
			f.add(relative{one.Kind.Kind, &one.Items[i]})
		}
		if one.Err != nil || one.More {
			f.unread = append(f.unread, one)
		}
	}
	return f, nil
}

// addPast adds the objects that were there at the moment of the page, from the history.
func (f *family) addPast() error {
	s, kinds := f.of, map[string]past.Kind{}
	left := sweepMost
	for version, err := range s.past.History.Versions(s.ctx(), past.Query{Namespace: s.Namespace}.Bound(historyv1.FieldAt, s.at)) {
		if err != nil {
			return err
		}
		if left--; left < 0 {
			f.unread = append(f.unread, swept{Kind: past.Served{Kind: past.Kind{Kind: "further objects"}}, More: true})
			break
		}
		object, err := past.Object(&version)
		if err != nil || slices.Contains(unsweepable, version.Object.Resource) {
			continue
		}
		kind, ok := kinds[version.Object.Resource]
		if !ok {
			kind, _ = s.past.History.FindPastKind(s.ctx(), version.Object.Resource)
			kinds[version.Object.Resource] = kind
		}
		f.add(relative{kind, object})
	}
	return nil
}

func (f *family) add(r relative) {
	f.byUID[r.GetUID()] = r
	for _, owner := range r.GetOwnerReferences() {
		f.below[owner.UID] = append(f.below[owner.UID], r)
	}
}

// roots returns the trees with an object: one for each of its topmost owners. What depends on it is in the first.
func (f *family) roots() []*treeNode {
	s := f.of
	f.shown = 0
	own := f.node(relative{s.Kind, s.Object})
	own.Here = true
	f.addChildren(own, s.Object.GetUID(), map[types.UID]bool{s.Object.GetUID(): true})
	return f.above(own, s.Object, map[types.UID]bool{s.Object.GetUID(): true})
}

// above returns the trees above a node.
func (f *family) above(n *treeNode, o metav1.Object, seen map[types.UID]bool) (roots []*treeNode) {
	for _, owner := range o.GetOwnerReferences() {
		if seen[owner.UID] {
			continue
		}
		seen[owner.UID] = true
		r, ok := f.byUID[owner.UID]
		if !ok {
			r, ok = f.findOwner(owner, o.GetNamespace())
		}
		if !ok {
			roots = append(roots, &treeNode{Kind: owner.Kind, Name: owner.Name, Missing: true, Children: []*treeNode{n}})
		} else {
			parent := f.node(r)
			parent.Children = []*treeNode{n}
			roots = append(roots, f.above(parent, r, seen)...)
		}
		n = &treeNode{Resource: n.Resource, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Link: n.Link, Here: n.Here}
	}
	if len(roots) == 0 {
		return []*treeNode{n}
	}
	return roots
}

// addChildren adds what depends on an object, the kinds with most first.
func (f *family) addChildren(n *treeNode, uid types.UID, seen map[types.UID]bool) {
	children := f.below[uid]
	slices.SortFunc(children, func(a, b relative) int {
		return cmp.Or(strings.Compare(a.kind.Name(), b.kind.Name()), strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	for _, child := range children {
		if seen[child.GetUID()] {
			continue
		}
		if len(n.Children) >= childrenMost || f.shown >= treeMost {
			n.More++
			continue
		}
		seen[child.GetUID()] = true
		f.shown++
		c := f.node(child)
		c.Shared = len(child.GetOwnerReferences()) > 1
		f.addChildren(c, child.GetUID(), seen)
		n.Children = append(n.Children, c)
	}
}

func (f *family) node(r relative) *treeNode {
	resource := r.kind.Name()
	n := &treeNode{Resource: resource, Kind: cmp.Or(r.kind.Kind, resource), Namespace: r.GetNamespace(), Name: r.GetName()}
	n.Link = f.of.objectLink(resource, n.Namespace, n.Name, "tree")
	if r.GetDeletionTimestamp() != nil {
		n.State, n.Good = "being deleted", "warn"
	}
	return n
}

// findOwner reads the metadata of an owner that is not among the objects that were looked through.
func (f *family) findOwner(owner metav1.OwnerReference, namespace string) (relative, bool) {
	if len(content.IsPathSegmentName(owner.Name)) > 0 {
		return relative{}, false // what somebody has written there must not become another path
	}
	gv, _ := schema.ParseGroupVersion(owner.APIVersion)
	kinds, _ := f.of.conn.served()
	for _, k := range kinds {
		if k.Kind.Kind != owner.Kind || k.Resource.Group != gv.Group || !f.of.at.IsNow() {
			continue
		}
		var o metav1.PartialObjectMetadata
		request := f.of.conn.rest.Get().AbsPath(pathOf(k.In(namespace, owner.Name))...).SetHeader("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io, application/json")
		if decode(request.Do(f.of.ctx()), &o) == nil && o.UID == owner.UID {
			return relative{k.Kind, &o}, true
		}
	}
	return relative{}, false
}

// flat returns all nodes below n.
func (n *treeNode) flat() (all []*treeNode) {
	for _, child := range n.Children {
		all = append(append(all, child), child.flat()...)
	}
	return all
}

// inside counts the objects in a namespace.
func (s *subject) inside() (all []insideCount) {
	kinds, _ := s.conn.sweepable(true)
	if !s.at.IsNow() {
		return nil
	}
	for _, one := range s.conn.sweep(s.ctx(), kinds, s.Name, 1) {
		if one.Total > 0 {
			all = append(all, insideCount{one.Kind.Name(), one.Kind.Kind.Kind, one.Total})
		}
	}
	slices.SortFunc(all, func(a, b insideCount) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Kind, b.Kind)) })
	return all
}

// eventsPart is what happened to an object, the newest first.
type eventsPart struct {
	Rows  []eventRow
	Cut   int // how many more there are
	Fault *explained
}

type eventRow struct {
	Type, Reason, Message, From string
	Count                       int32
	First, Last                 time.Time
}

const eventsMost = 200

// events returns the events about an object: of now, or as they were kept at the moment of the page.
func (s *subject) events() (part eventsPart) {
	all, err := s.allEvents()
	if err != nil {
		e := explain(err)
		part.Fault = &e
	}
	for i := range all {
		part.Rows = append(part.Rows, eventRowOf(&all[i]))
	}
	slices.SortStableFunc(part.Rows, func(a, b eventRow) int { return b.Last.Compare(a.Last) })
	if part.Cut = len(part.Rows) - eventsMost; part.Cut > 0 {
		part.Rows = part.Rows[:eventsMost]
	}
	return part
}

func (s *subject) allEvents() ([]corev1.Event, error) {
	namespace := cmp.Or(s.Namespace, metav1.NamespaceDefault) // events of what is in none are there
	if !s.at.IsNow() {
		return s.pastEvents(namespace)
	}
	selector := "involvedObject.name=" + s.Name + ",involvedObject.uid=" + string(s.Object.GetUID())
	if s.Object.GetUID() == "" || s.Resource == "nodes" { // the kubelet writes the name of a node as its uid
		selector = "involvedObject.name=" + s.Name + ",involvedObject.kind=" + s.Kind.Kind
	}
	var list corev1.EventList
	request := s.conn.rest.Get().AbsPath("api", "v1", "namespaces", namespace, "events").Param("fieldSelector", selector)
	return list.Items, decode(request.Do(s.ctx()), &list)
}

// pastEvents reads the events of an object from the history.
func (s *subject) pastEvents(namespace string) (all []corev1.Event, err error) {
	kind, err := s.past.Kinds.Find("events")
	if err != nil {
		return nil, err
	}
	for version, err := range s.past.History.Versions(s.ctx(), past.Query{}.ToObject(kind.In(namespace, "")).Bound(historyv1.FieldAt, s.at)) {
		if err != nil {
			return all, err
		}
		var e corev1.Event
		if o, err := past.Object(&version); err == nil && fromUnstructured(o, &e) && e.InvolvedObject.UID == s.Object.GetUID() {
			all = append(all, e)
		}
	}
	return all, nil
}

func eventRowOf(e *corev1.Event) eventRow {
	row := eventRow{Type: e.Type, Reason: e.Reason, Message: e.Message, From: cmp.Or(e.Source.Component, e.ReportingController), Count: max(1, e.Count)}
	row.First = e.FirstTimestamp.Time
	row.Last = e.LastTimestamp.Time
	if e.Series != nil {
		row.Count, row.Last = max(row.Count, e.Series.Count), e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if row.Last.IsZero() {
			row.Last = t
		}
		if row.First.IsZero() {
			row.First = t
		}
	}
	return row
}

// fromUnstructured reads an object of a built-in kind.
func fromUnstructured(o *unstructured.Unstructured, into any) bool {
	text, err := o.MarshalJSON()
	return err == nil && json.Unmarshal(text, into) == nil
}
