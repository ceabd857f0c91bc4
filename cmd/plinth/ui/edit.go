package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// editPage is the page on which an object is changed.
type editPage struct {
	*subject
	Text     string // as the visitor wrote it
	Version  string // resourceVersion of the object that he looked at
	Newer    string // the one that the object has, if it changed meanwhile
	Hidden   bool   // a Secret whose values are not shown
	Preview  bool
	Same     bool // the preview shows no change
	Diff     []diffRow
	Warnings []string
	Fault    *explained
}

// Shown is the parameter that shows the values of a Secret, which one needs to edit it.
func (b *editPage) Shown() string {
	if b.Secret {
		return "1"
	}
	return ""
}

// edit shows the form, what the server would make of it, or writes it.
func (s *subject) edit() error {
	b := &editPage{subject: s, Hidden: s.Secret && !s.Reveal}
	if s.r.Method == http.MethodGet || b.Hidden {
		return b.show(b.fill())
	}
	b.Text, b.Version = strings.ReplaceAll(s.r.PostForm.Get("text"), "\r\n", "\n"), cmp.Or(s.r.PostForm.Get("anew"), s.r.PostForm.Get("rv"))
	if s.r.PostForm.Get("step") != "write" {
		return b.show(b.preview())
	}
	if _, _, err := b.update(false); err != nil {
		return b.show(err)
	}
	s.went("", "done", "written")
	return nil
}

// presentSubject is subject for pages that change an object, which the past cannot be.
func (v *visit) presentSubject(tab string) (*subject, error) {
	if !v.at.IsNow() {
		return nil, problem(http.StatusBadRequest, "You see the past, which cannot be changed. Go back to now, or restore an older version from the timeline.")
	}
	return v.subject(tab)
}

// went leads to a page of the object after a change.
func (s *subject) went(page string, more ...string) {
	http.Redirect(s.w, s.r, s.objectLink(s.Resource, s.Namespace, s.Name, page, more...), http.StatusSeeOther)
}

// fill puts the object as it is into the form.
func (b *editPage) fill() error {
	b.Version = b.Object.GetResourceVersion()
	if b.Hidden {
		return nil
	}
	text, err := yamlOf(b.Object, false, true)
	b.Text = string(text)
	return err
}

// show shows the form, with what is wrong with it.
func (b *editPage) show(err error) error {
	p := page{Title: "Edit " + b.Name, Nav: b.Resource, Body: b}
	if err != nil {
		e := explain(err)
		b.Fault, p.Code = &e, e.Code
		if apierrors.IsConflict(err) {
			b.Newer = b.Object.GetResourceVersion()
		}
	}
	return b.visit.show("edit.html", p)
}

// preview asks the server what it would make of the form, and compares that with what is there.
func (b *editPage) preview() error {
	would, warnings, err := b.update(true)
	if err != nil {
		return err
	}
	old, err := yamlOf(b.Object, false, true)
	if err != nil {
		return err
	}
	// A dry run has the resourceVersion of before, and so has the comparison.
	would.SetResourceVersion(b.Object.GetResourceVersion())
	fresh, err := yamlOf(would, false, true)
	if err != nil {
		return err
	}
	b.Preview, b.Warnings, b.Same = true, warnings, bytes.Equal(old, fresh)
	b.Diff = diffRows(old, fresh)
	return nil
}

// update writes the form, or has the server try to. The server checks that it is about this object, and that it is
// still as it was looked at.
func (b *editPage) update(try bool) (*unstructured.Unstructured, []string, error) {
	body, err := b.body()
	if err != nil {
		return nil, nil, err
	}
	request := b.conn.rest.Put().AbsPath(pathOf(b.Kind.In(b.Namespace, b.Name))...).SetHeader("Content-Type", "application/json").
		Param("fieldManager", userAgent).Param("fieldValidation", "Strict").Body(body)
	return sent(dryRun(request, try).Do(b.ctx()))
}

func dryRun(request *clientrest.Request, try bool) *clientrest.Request {
	if try {
		request = request.Param("dryRun", "All")
	}
	return request
}

// sent reads an object that the server has made of a write, and what it warned of.
func sent(result clientrest.Result) (*unstructured.Unstructured, []string, error) {
	var warnings []string
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	var text json.RawMessage
	if err := decode(result, &text); err != nil {
		return nil, warnings, err
	}
	out := new(unstructured.Unstructured)
	return out, warnings, out.UnmarshalJSON(text) // which keeps large numbers as they are
}

// body is the object of the form as JSON, with the resourceVersion that the form had.
func (b *editPage) body() ([]byte, error) {
	var content map[string]any
	text, err := yaml.YAMLToJSONStrict([]byte(b.Text))
	if err == nil {
		err = utiljson.Unmarshal(text, &content) // which keeps large numbers as they are
	}
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, "This is no YAML of an object: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: "))
	}
	if len(content) == 0 {
		return nil, problem(http.StatusUnprocessableEntity, "The text is empty. To delete the object use Delete on its page.")
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, problem(http.StatusUnprocessableEntity, "The text has no metadata.")
	}
	metadata["resourceVersion"] = cmp.Or(b.Version, b.Object.GetResourceVersion())
	return json.Marshal(content)
}
