package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// subject is the object that a visit is about, for the pages of it and the head that they share.
type subject struct {
	*visit
	Kind      past.Kind
	Resource  string // deployments.apps
	Namespace string
	Name      string
	Tab       string // yaml, timeline, …
	Object    *unstructured.Unstructured
	Gone      bool // it is not there now, though it was
	Secret    bool
	Reveal    bool // the values of a Secret are shown
	CanScale  bool
}

// Created is when the object was.
func (s *subject) Created() time.Time {
	if s.Object == nil {
		return time.Time{}
	}
	return s.Object.GetCreationTimestamp().Time
}

// subject finds the object that the path names, as it is, or as it was at the moment of the page. It is an error if
// it is not there, but for the pages that are about the past.
func (v *visit) subject(tab string) (*subject, error) {
	s, err := v.newSubject(tab)
	if err == nil {
		s.Object, err = s.objectAt(v.at)
	}
	return s, err
}

// pastSubject is subject for the pages about the past of an object, which may be gone, and its kind too.
func (v *visit) pastSubject(tab string) (*subject, error) {
	s, err := v.newSubject(tab)
	if err != nil {
		return nil, err
	}
	s.Object, err = s.objectAt(past.Moment{})
	if s.Gone = s.Kind.Resource.Version == "" || apierrors.IsNotFound(err); s.Gone {
		return s, nil
	}
	return s, err
}

func (v *visit) newSubject(tab string) (*subject, error) {
	t, err := v.target()
	if err != nil {
		return nil, err
	}
	return &subject{visit: v, Kind: t.Kind, Resource: t.Kind.Name(), Namespace: t.Namespace, Name: t.Name, Tab: tab,
		Secret: t.Kind.Name() == "secrets", Reveal: v.param("reveal") == "1", CanScale: v.conn.canScale(t.Kind)}, nil
}

// target is the object as the history names it.
func (s *subject) target() past.Target {
	return past.Target{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}

// title is what the page of an object is called.
func (s *subject) title() string { return s.Name + " · " + cmp.Or(s.Kind.Kind, s.Resource) }

// objectAt reads the object as it is, or as it was.
func (s *subject) objectAt(at past.Moment) (*unstructured.Unstructured, error) {
	if !at.IsNow() {
		return s.objectThen(at)
	}
	if s.Kind.Resource.Version == "" {
		return nil, problem(http.StatusNotFound, "The server does not have the type %q any more. Its timeline and the trash show what is kept.", s.Resource)
	}
	objects := s.conn.objects.Resource(s.Kind.Resource)
	if s.Namespace == "" {
		return objects.Get(s.ctx(), s.Name, metav1.GetOptions{})
	}
	return objects.Namespace(s.Namespace).Get(s.ctx(), s.Name, metav1.GetOptions{})
}

// objectThen reads the object as it was.
func (s *subject) objectThen(at past.Moment) (*unstructured.Unstructured, error) {
	t := s.target()
	version, err := s.past.History.At(s.ctx(), t, at)
	switch {
	case err != nil:
		return nil, err
	case version != nil:
		return past.Object(version)
	}
	if err := s.past.History.MayGet(s.ctx(), t); err != nil {
		return nil, problem(http.StatusForbidden, "%v", err)
	}
	return nil, problem(http.StatusNotFound, "%s was not there at %s. Its timeline shows when it was.", t, at)
}

// canScale tells whether objects of a kind have a number of replicas to set.
func (c *connection) canScale(kind past.Kind) bool {
	kinds, _ := c.served()
	for _, k := range kinds {
		if k.Kind == kind {
			return k.Scale
		}
	}
	return false
}

// objectPage is the page of an object's YAML.
type objectPage struct {
	*subject
	Lines      []textLine
	Conditions []condition
	Managed    bool
	Done       string // what the visitor has just done with it
}

// doneTexts say what was done, by the word in the address.
var doneTexts = map[string]string{
	"written": "Written.", "scaled": "The number of replicas is set.", "restarted": "Its pods are being replaced.",
}

// condition is one of status.conditions.
type condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
	Good                          string // yes, no or empty: nobody knows
}

// object shows what an object is.
func (s *subject) object() error {
	b := &objectPage{subject: s, Managed: s.param("managed") == "1", Conditions: conditionsOf(s.Object), Done: doneTexts[s.param("done")]}
	text, err := yamlOf(s.Object, b.Managed, s.Reveal)
	if err != nil {
		return err
	}
	b.Lines = linesOf(text)
	return s.show("object.html", page{Title: s.title(), Nav: s.Resource, Body: b})
}

// yamlOf is an object as the page shows it: without managed fields unless they are asked for, and with the values of
// Secrets masked.
func yamlOf(o *unstructured.Unstructured, managed, reveal bool) ([]byte, error) {
	if !reveal {
		o = newMask().object(o)
	}
	content := o.Object
	if !managed {
		o = o.DeepCopy()
		o.SetManagedFields(nil)
		content = o.Object
	}
	return past.YAML(content)
}

func conditionsOf(o *unstructured.Unstructured) (all []condition) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		c := condition{Type: word(m["type"]), Status: word(m["status"]), Reason: word(m["reason"]), Message: word(m["message"])}
		c.Since, _ = time.Parse(time.RFC3339, word(m["lastTransitionTime"]))
		c.Good = verdict(c.Type, c.Status)
		all = append(all, c)
	}
	return all
}

func word(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// badWhenTrue are conditions that say what is wrong.
var badWhenTrue = map[string]bool{
	"MemoryPressure": true, "DiskPressure": true, "PIDPressure": true, "NetworkUnavailable": true, "ReplicaFailure": true, "Failed": true,
	"NonStructuralSchema": true, "Dangling": true, "DisruptionTarget": true, "FailureTarget": true,
	"NamespaceDeletionDiscoveryFailure": true, "NamespaceDeletionContentFailure": true, "NamespaceDeletionGroupVersionParsingFailure": true,
}

func verdict(kind, status string) string {
	switch {
	case status == "Unknown":
		return ""
	case badWhenTrue[kind] == (status == "True"):
		return "no"
	}
	return "yes"
}
