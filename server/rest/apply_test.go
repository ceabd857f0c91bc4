package rest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plinth-io/plinth/server/rest"
)

// applyRow is a sequence of writes to objects in a namespace of its own.
type applyRow struct {
	name  string
	steps []applyStep
}

// applyStep is one request and its expected answer.
type applyStep struct {
	do   string // verb, object[/subresource] of applyPaths, "as" and a manager, query parameters
	body string
	code int
	want string // fields of the answer as path=value; of a failure its reason, message and causes
}

var applyPaths = map[string]string{
	"c":           "/api/v1/namespaces/NAMESPACE/configmaps/c",
	"s":           "/api/v1/namespaces/NAMESPACE/services/s",
	"p":           "/api/v1/namespaces/NAMESPACE/pods/p",
	"d":           "/apis/apps/v1/namespaces/NAMESPACE/deployments/d",
	"r":           "/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles/r",
	"cr":          "/apis/apps/v1/namespaces/NAMESPACE/controllerrevisions/cr",
	"crd":         "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.apply.io",
	"apiservice":  "/apis/apiregistration.k8s.io/v1/apiservices/v1.remote.apply.io",
	"clusterrole": "/apis/rbac.authorization.k8s.io/v1/clusterroles/apply",
	"hpa1":        "/apis/autoscaling/v1/namespaces/NAMESPACE/horizontalpodautoscalers/h",
	"hpa2":        "/apis/autoscaling/v2/namespaces/NAMESPACE/horizontalpodautoscalers/h",
}

// applyVerbs are methods and content types.
var applyVerbs = map[string][2]string{
	"get":    {"GET", ""},
	"delete": {"DELETE", ""},
	"post":   {"POST", "application/json"},
	"put":    {"PUT", "application/json"},
	"json":   {"PATCH", "application/json-patch+json"},
	"merge":  {"PATCH", "application/merge-patch+json"},
	"smp":    {"PATCH", "application/strategic-merge-patch+json"},
	"apply":  {"PATCH", "application/apply-patch+yaml"},
}

// https://kubernetes.io/docs/reference/using-api/server-side-apply/
func TestApply(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		for i, row := range applyRows {
			t.Run(row.name, func(t *testing.T) {
				here := *h
				here.t = t
				here.play(fmt.Sprintf("apply-%d", i), row.steps)
			})
		}
	})
}

func (h *harness) play(namespace string, steps []applyStep) {
	h.t.Helper()
	before := ""
	for i, step := range steps {
		a := h.doStep(namespace, step)
		if a.code != step.code {
			h.t.Fatalf("step %d, %s: code %d, want %d: %s", i, step.do, a.code, step.code, a.body)
		}
		if got := a.told(step.want, before); got != step.want {
			h.t.Errorf("step %d, %s: got\n%s, want\n%s\n%s", i, step.do, got, step.want, a.body)
		}
		if a.code < 400 {
			before = a.get("metadata", "resourceVersion")
		}
	}
}

func (h *harness) doStep(namespace string, step applyStep) answer {
	words := strings.Fields(step.do)
	verb := applyVerbs[words[0]]
	object, sub, isSub := strings.Cut(words[1], "/")
	path := strings.ReplaceAll(applyPaths[object], "NAMESPACE", namespace)
	if isSub {
		path += "/" + sub
	}
	if verb[0] == "POST" {
		path = path[:strings.LastIndex(path, "/")]
	}
	query := url.Values{}
	for i, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			query.Set(key, value)
		} else if word == "as" {
			query.Set("fieldManager", words[i+1])
		}
	}
	return h.do(verb[0], path+"?"+query.Encode(), step.body, "Content-Type", verb[1])
}

// told has the actual value of each field that want names.
func (a answer) told(want, before string) string {
	if a.code >= 400 {
		return a.failure()
	}
	var told []string
	for _, check := range strings.Split(want, "; ") {
		path, _, _ := strings.Cut(check, "=")
		told = append(told, path+"="+a.tell(path, before))
	}
	return strings.Join(told, "; ")
}

// tell is a field of the answer, or a view of it: the managed fields; the managers with version and
// subresource; the managers whose entries are younger than an edited one; whether the
// resourceVersion has changed; the warnings.
func (a answer) tell(path, before string) string {
	switch path {
	case "fields":
		return a.managed(func(e metav1.ManagedFieldsEntry) string {
			verb := map[string]string{"Apply": "applies", "Update": "updates"}[string(e.Operation)]
			return e.Manager + " " + verb + fieldSet(a.t, e).text()
		})
	case "managers":
		return a.managed(func(e metav1.ManagedFieldsEntry) string {
			return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.APIVersion, e.Subresource))
		})
	case "times":
		return a.managed(func(e metav1.ManagedFieldsEntry) string {
			switch {
			case e.Time == nil:
				return e.Manager + " none"
			case e.Time.Year() < 2001:
				return e.Manager + " old"
			}
			return e.Manager + " new"
		})
	case "revision":
		return map[bool]string{true: "same", false: "new"}[a.get("metadata", "resourceVersion") == before]
	case "warnings":
		return strings.Join(a.head.Values("Warning"), " | ")
	}
	return a.get(strings.Split(path, "/")...)
}

// managed describes each entry of managedFields.
func (a answer) managed(describe func(metav1.ManagedFieldsEntry) string) string {
	var told []string
	for _, e := range managedFields(a.t, a.body) {
		told = append(told, describe(e))
	}
	slices.Sort(told)
	return strings.Join(told, " | ")
}

// failure is an answer's reason, message and causes.
func (a answer) failure() string {
	var s metav1.Status
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || s.Kind != "Status" || int(s.Code) != a.code {
		a.t.Fatalf("not a Status: %s", a.body)
	}
	told := []string{string(s.Reason) + ": " + s.Message}
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			told = append(told, fmt.Sprintf("%s %s %s", c.Type, c.Field, c.Message))
		}
	}
	slices.Sort(told[1:]) // upstream's are in no order
	return strings.Join(told, "; ")
}

func managedFields(t testing.TB, object string) []metav1.ManagedFieldsEntry {
	t.Helper()
	var o struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return o.Metadata.ManagedFields
}

// fields are the paths of an entry of managedFields.
type fields struct{ *fieldpath.Set }

func fieldSet(t testing.TB, e metav1.ManagedFieldsEntry) fields {
	t.Helper()
	set := &fieldpath.Set{}
	if e.FieldsType != "FieldsV1" || e.FieldsV1 == nil || set.FromJSON(e.FieldsV1.GetRawReader()) != nil {
		t.Fatalf("entry without fields: %+v", e)
	}
	return fields{set}
}

func (f fields) text() string {
	var paths strings.Builder
	f.Iterate(func(p fieldpath.Path) { paths.WriteString(" " + p.String()) })
	return paths.String()
}
