package rest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/rest"
)

// gatekeeper labels bindings, lets nobody into pods but to echo, and tells what it is asked.
type gatekeeper struct{}

var (
	_ admission.MutationInterface   = gatekeeper{}
	_ admission.ValidationInterface = gatekeeper{}
)

func (gatekeeper) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Connect
}

func (gatekeeper) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if b, ok := a.GetObject().(*api.Binding); ok {
		b.Annotations = map[string]string{"seen": string(a.GetOperation())}
	}
	return nil
}

func (gatekeeper) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	exec, ok := a.GetObject().(*api.PodExecOptions)
	switch {
	case ok && exec.Command[0] != "echo", a.GetSubresource() == "eviction", a.GetSubresource() == "binding" && a.IsDryRun():
		return admission.NewForbidden(a, errors.New(fmt.Sprint(a.GetOperation(), " ", a.GetKind(), " ", a.GetResource().Resource, "/", a.GetSubresource(), " ", a.GetName())))
	}
	return nil
}

// Admission is asked about what is created of a pod, and about connections into it.
func TestPartAdmission(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: gatekeeper{}})
	h.playAll(t, []namedScript{
		{"create", `
			POST pods ` + aPod + `
			201 Pod
			POST pods/a/binding?dryRun=All ` + bind("a", "n1") + `
			403 Forbidden: pods "a" is forbidden: CREATE /v1, Kind=Binding pods/binding a
			POST bindings?dryRun=All ` + bind("a", "n1") + `
			201 Status
			POST pods/a/binding ` + bind("a", "n1") + `
			201 Status
			GET pods/a
			200 Pod metadata.annotations.seen=CREATE
			POST pods/a/eviction ` + evict + `
			403 Forbidden: pods "a" is forbidden: CREATE policy/v1, Kind=Eviction pods/eviction a`},
		{"connect", `
			POST pods ` + aPod + `
			201 Pod
			GET pods/a/exec?command=rm&command=-rf
			403 Forbidden: pods "a" is forbidden: CONNECT /v1, Kind=PodExecOptions pods/exec a
			GET pods/a/exec?command=echo&stdout=1
			400 BadRequest: pod a does not have a host assigned
			GET pods/a/log
			204 -`},
	})
}
