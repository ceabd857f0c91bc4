package rest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

func bind(pod, node string) string {
	return `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"` + pod + `"},"target":{"kind":"Node","name":"` + node + `"}}`
}

// bindingRows have the answers of kube-apiserver.
var bindingRows = []namedScript{
	{"a pod is bound once", `
		POST pods ` + pod + `
		201 Pod
		POST pods/a/binding ` + bind("a", "n1") + `
		201 Status status=Success code=201
		GET pods/a
		200 Pod spec.nodeName=n1 status.conditions.0.type=PodScheduled status.conditions.0.status=True metadata.generation=1 metadata.managedFields.1=
		POST pods/a/binding ` + bind("a", "n2") + `
		409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"
		details: name=a kind=pods/binding`},
	{"dry run", `
		POST pods ` + pod + `
		201 Pod
		POST pods/a/binding?dryRun=All ` + bind("a", "n1") + `
		201 Status status=Success code=201
		GET pods/a
		200 Pod spec.nodeName=
		POST pods/a/binding?dryRun=Some ` + bind("a", "n1") + `
		422 Invalid: CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`},
	{"preconditions", `
		POST pods ` + pod + `
		201 Pod uid:=metadata.uid rv:=metadata.resourceVersion
		POST pods/a/binding {"metadata":{"name":"a","uid":"other"},"target":{"name":"n1"}}
		409 Conflict: Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: /registry/pods/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ${uid}
		POST pods/a/binding {"metadata":{"name":"a","resourceVersion":"1"},"target":{"name":"n1"}}
		409 Conflict: Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: /registry/pods/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: ${rv}
		POST pods/a/binding {"metadata":{"name":"a","uid":"${uid}","resourceVersion":"${rv}","annotations":{"x":"y"},"labels":{"l":"m"}},"target":{"name":"n1"}}
		201 Status
		GET pods/a
		200 Pod spec.nodeName=n1 metadata.annotations={"x":"y"} metadata.labels={"l":"m"}`},
	{"a pod with scheduling gates is not bound", `
		POST pods {"metadata":{"name":"a"},"spec":{"schedulingGates":[{"name":"example.com/g"}],"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		POST pods/a/binding ` + bind("a", "n1") + `
		409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates`},
	{"a pod that is being deleted is not bound", `
		POST pods {"metadata":{"name":"a","finalizers":["example.com/f"]},"spec":{"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		DELETE pods/a
		200 Pod
		POST pods/a/binding ` + bind("a", "n1") + `
		409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host`},
	{"invalid bodies", `
		POST pods ` + pod + `
		201 Pod
		POST pods/a/binding {"metadata":{"name":"a"}}
		500 : target.name: Required value
		POST pods/a/binding {"metadata":{"name":"a"},"target":{"kind":"Pod","name":"n1"}}
		500 : target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"
		POST pods/a/binding ` + bind("b", "n1") + `
		400 BadRequest: name in URL does not match name in Binding object
		POST pods/a/binding {"metadata":{"name":"a","namespace":"other"},"target":{"name":"n1"}}
		400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
		POST pods/a/binding {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}
		400 BadRequest: Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to (core.Binding): unknown conversion
		POST pods/a/binding?fieldValidation=Strict {"metadata":{"name":"a"},"to":1,"target":{"name":"n1"}}
		400 BadRequest: Binding in version "v1" cannot be handled as a Binding: strict decoding error: unknown field "to"
		POST pods/none/binding ` + bind("none", "n1") + `
		404 NotFound: pods "none" not found
		GET pods/a/binding
		405 MethodNotAllowed: the server does not allow this method on the requested resource`},
	{"a Binding created in the collection of bindings", `
		POST pods ` + pod + `
		201 Pod
		POST bindings?dryRun=All ` + bind("a", "n1") + `
		201 Status
		POST bindings ` + bind("a", "n1") + `
		201 Status
		GET pods/a
		200 Pod spec.nodeName=n1
		POST bindings ` + bind("a", "n1") + `
		409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"
		GET bindings
		405 MethodNotAllowed: the server does not allow this method on the requested resource
		GET bindings/a
		404 NotFound: the server could not find the requested resource`},
}

// TestBinding binds pods, and one pod by many clients at once.
func TestBinding(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.playAll(t, bindingRows)
		h.do("POST", "/api/v1/namespaces/race/pods", pod).want(201)
		testBinders(t, h, 20)
	})
}

// testBinders lets n clients bind the same pod, each to a node of its own. Exactly one succeeds.
func testBinders(t *testing.T, h *harness, n int) {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			answers[i] = h.do("POST", "/api/v1/namespaces/race/pods/a/binding", bind("a", fmt.Sprintf("n%d", i)))
		})
	}
	wg.Wait()
	winner := ""
	for i, a := range answers {
		switch {
		case a.code == 201 && winner == "":
			winner = fmt.Sprintf("n%d", i)
		case a.code != 409 || !strings.Contains(a.body, "already assigned"):
			t.Errorf("another answer: %d %s", a.code, a.body)
		}
	}
	if node := h.do("GET", "/api/v1/namespaces/race/pods/a", "").get("spec", "nodeName"); node != winner || node == "" {
		t.Errorf("the pod is on %q, %q won", node, winner)
	}
}
