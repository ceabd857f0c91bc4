package ui

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// restartable are the kinds whose pods a new annotation of their template replaces, as kubectl rollout restart does.
var restartable = []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps"}

// CanRestart tells whether the pods of the object can be replaced by new ones.
func (s *subject) CanRestart() bool { return slices.Contains(restartable, s.Resource) }

// scalePage is the page on which the number of replicas is set.
type scalePage struct {
	*subject
	Now     int32 // as wanted
	Running int32
	Want    string
	Version string
	Fault   *explained
}

// scale shows how many replicas an object has, or sets how many.
func (s *subject) scale() error {
	if !s.CanScale {
		return problem(http.StatusNotFound, "%s have no number of replicas.", s.Resource)
	}
	var err error
	path := append(pathOf(s.Kind.In(s.Namespace, s.Name)), "scale")
	var is autoscalingv1.Scale
	if err := s.get(&is, nil, path...); err != nil {
		return err
	}
	b := &scalePage{subject: s, Now: is.Spec.Replicas, Running: is.Status.Replicas, Want: strconv.Itoa(int(is.Spec.Replicas)), Version: is.ResourceVersion}
	if s.r.Method == http.MethodPost {
		b.Want, b.Version = strings.TrimSpace(s.r.PostFormValue("replicas")), s.r.PostFormValue("rv")
		if err = b.set(&is, path); err == nil {
			s.went("", "done", "scaled")
			return nil
		}
	}
	return s.showForm("scale.html", "Scale", b, &b.Fault, err)
}

// set writes the number of replicas, if the object is still as it was looked at.
func (b *scalePage) set(is *autoscalingv1.Scale, path []string) error {
	n, err := strconv.ParseInt(b.Want, 10, 32)
	if err != nil || n < 0 {
		return problem(http.StatusUnprocessableEntity, "%q is no number of replicas.", b.Want)
	}
	is.Spec.Replicas, is.ResourceVersion = int32(n), b.Version
	body, err := json.Marshal(is)
	if err != nil {
		return err
	}
	request := b.conn.rest.Put().AbsPath(path...).SetHeader("Content-Type", "application/json").Param("fieldManager", userAgent)
	return request.Body(body).Do(b.ctx()).Error()
}

// showForm shows a form of an object, with what went wrong.
func (s *subject) showForm(name, title string, body any, fault **explained, err error) error {
	p := page{Title: title + " " + s.Name, Nav: s.Resource, Body: body}
	if err != nil {
		e := explain(err)
		*fault, p.Code = &e, e.Code
	}
	return s.show(name, p)
}

// restartPage is the page on which the pods of an object are replaced.
type restartPage struct {
	*subject
	Replicas int64
	Strategy string // how they are replaced
	Before   time.Time
	Version  string
	Fault    *explained
}

// restartedAt is the annotation that kubectl rollout restart writes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// restart shows what a restart does, or does it.
func (s *subject) restart() error {
	if !s.CanRestart() {
		return problem(http.StatusNotFound, "Only deployments, statefulsets and daemonsets can be restarted.")
	}
	var err error
	b := &restartPage{subject: s, Version: s.Object.GetResourceVersion()}
	b.Replicas, _, _ = unstructured.NestedInt64(s.Object.Object, "spec", "replicas")
	if s.Resource == "daemonsets.apps" {
		b.Replicas, _, _ = unstructured.NestedInt64(s.Object.Object, "status", "desiredNumberScheduled")
	}
	for _, field := range []string{"strategy", "updateStrategy"} {
		if found, ok, _ := unstructured.NestedString(s.Object.Object, "spec", field, "type"); ok {
			b.Strategy = found
		}
	}
	before, _, _ := unstructured.NestedString(s.Object.Object, "spec", "template", "metadata", "annotations", restartedAt)
	b.Before, _ = time.Parse(time.RFC3339, before)
	if s.r.Method == http.MethodPost {
		b.Version = s.r.PostFormValue("rv")
		if err = b.do(); err == nil {
			s.went("", "done", "restarted")
			return nil
		}
	}
	return s.showForm("restart.html", "Restart", b, &b.Fault, err)
}

// do writes the annotation, if the object is still as it was looked at.
func (b *restartPage) do() error {
	if b.Version == "" {
		return problem(http.StatusBadRequest, "The form does not say which resourceVersion was looked at.")
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": b.Version},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{restartedAt: time.Now().UTC().Format(time.RFC3339)},
		}}},
	})
	if err != nil {
		return err
	}
	request := b.conn.rest.Patch("application/merge-patch+json").AbsPath(pathOf(b.Kind.In(b.Namespace, b.Name))...)
	return request.Param("fieldManager", userAgent).Body(patch).Do(b.ctx()).Error()
}
