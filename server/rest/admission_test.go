package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/rest"
)

// deletionGuard refuses to delete objects that have the label "keep", and warns with the text of
// their label "warn".
type deletionGuard struct{}

var _ apiadmission.ValidationInterface = deletionGuard{}

func (deletionGuard) Handles(op apiadmission.Operation) bool { return op == apiadmission.Delete }

func (deletionGuard) Validate(ctx context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	m, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return err
	}
	if text := m.GetLabels()["warn"]; text != "" {
		warning.AddWarning(ctx, "", text)
	}
	if m.GetLabels()["keep"] == "" {
		return nil
	}
	if a.IsDryRun() {
		return apiadmission.NewForbidden(a, errors.New("not even dry"))
	}
	return apiadmission.NewForbidden(a, errors.New("not yet"))
}

// TestDeletionAdmission wants preconditions to be checked before admission is asked about a
// deletion.
func TestDeletionAdmission(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: deletionGuard{}}, nothingStays)
	h.playAll(t, []namedScript{
		{"admission may refuse a deletion", `
			POST configmaps {"metadata":{"name":"a","labels":{"keep":"1"},"finalizers":["x.io/a"]}}
			201 ConfigMap
			DELETE configmaps/a
			403 Forbidden: configmaps "a" is forbidden: not yet
			DELETE configmaps/a?dryRun=All
			403 Forbidden: configmaps "a" is forbidden: not even dry
			PATCH configmaps/a {"metadata":{"labels":null}}
			200 ConfigMap
			DELETE configmaps/a
			200 ConfigMap metadata.deletionTimestamp=*
			PATCH configmaps/a {"metadata":{"finalizers":null,"labels":{"keep":"1"}}}
			200 ConfigMap
			GET configmaps/a
			404 NotFound: configmaps "a" not found`},
		{"admission is not asked about an absent object or a failed precondition", `
			DELETE configmaps/a
			404 NotFound: configmaps "a" not found
			POST configmaps {"metadata":{"name":"a","labels":{"keep":"1"}}}
			201 ConfigMap uid:=metadata.uid
			DELETE configmaps/a {"preconditions":{"uid":"x"}}
			409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated`},
		{"admission is not asked again about a deletion that runs, unless it is forced", `
			POST pods ` + onNode + `
			201 Pod
			DELETE pods/a
			200 Pod metadata.deletionGracePeriodSeconds=30
			PATCH pods/a {"metadata":{"labels":{"keep":"1"}}}
			200 Pod
			DELETE pods/a
			200 Pod
			DELETE pods/a?gracePeriodSeconds=0
			403 Forbidden: pods "a" is forbidden: not yet`},
		{"a namespace: preconditions are checked before admission", `
			POST /api/v1/namespaces {"metadata":{"name":"NS","labels":{"keep":"1"}}}
			201 Namespace uid:=metadata.uid
			DELETE /api/v1/namespaces/NS {"preconditions":{"uid":"x"}}
			409 Conflict: Operation cannot be fulfilled on namespaces "NS": Precondition failed: UID in precondition: x, UID in object meta: ${uid}
			DELETE /api/v1/namespaces/NS
			403 Forbidden: namespaces "NS" is forbidden: not yet`},
		{"a collection: the refusal has no object's name", `
			POST configmaps {"metadata":{"name":"a","labels":{"keep":"1"}}}
			201 ConfigMap
			DELETE configmaps
			403 Forbidden: configmaps "Unknown" is forbidden: not yet
			GET configmaps/a
			200 ConfigMap`},
		{"a collection: each warning text is sent once", `
			POST configmaps {"metadata":{"name":"a","labels":{"warn":"careful"}}}
			201 ConfigMap
			POST configmaps {"metadata":{"name":"b","labels":{"warn":"careful"}}}
			201 ConfigMap
			POST configmaps {"metadata":{"name":"c","labels":{"warn":"careful"}}}
			201 ConfigMap
			DELETE configmaps
			200 ConfigMapList
			warning: careful`},
	})
}

// subresourceGuard labels bindings, refuses connections into pods other than echo, and records what
// it is asked.
type subresourceGuard struct{}

var (
	_ apiadmission.MutationInterface   = subresourceGuard{}
	_ apiadmission.ValidationInterface = subresourceGuard{}
)

func (subresourceGuard) Handles(op apiadmission.Operation) bool {
	return op == apiadmission.Create || op == apiadmission.Connect
}

func (subresourceGuard) Admit(_ context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	if b, ok := a.GetObject().(*api.Binding); ok {
		b.Annotations = map[string]string{"seen": string(a.GetOperation())}
	}
	return nil
}

func (subresourceGuard) Validate(_ context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	exec, ok := a.GetObject().(*api.PodExecOptions)
	switch {
	case ok && exec.Command[0] != "echo", a.GetSubresource() == "eviction", a.GetSubresource() == "binding" && a.IsDryRun():
		return apiadmission.NewForbidden(a, errors.New(fmt.Sprint(a.GetOperation(), " ", a.GetKind(), " ", a.GetResource().Resource, "/", a.GetSubresource(), " ", a.GetName())))
	}
	return nil
}

// TestSubresourceAdmission wants admission to be asked about creates in the subresources of a pod,
// and about connections into the pod.
func TestSubresourceAdmission(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: subresourceGuard{}}, nothingStays)
	h.playAll(t, []namedScript{
		{"create", `
			POST pods ` + pod + `
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
			POST pods ` + pod + `
			201 Pod
			GET pods/a/exec?command=rm&command=-rf
			403 Forbidden: pods "a" is forbidden: CONNECT /v1, Kind=PodExecOptions pods/exec a
			GET pods/a/exec?command=echo&stdout=1
			400 BadRequest: pod a does not have a host assigned
			GET pods/a/log
			204 -`},
	})
}

// writes notes the contexts of the writes that admission allows.
type writes struct{ allowed chan context.Context }

func (writes) Handles(op apiadmission.Operation) bool {
	return op == apiadmission.Create || op == apiadmission.Update
}

func (w writes) Validate(ctx context.Context, _ apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	w.allowed <- ctx
	return nil
}

// answering is a client that looks which writes have ended when it gets the answer.
type answering struct {
	*httptest.ResponseRecorder
	allowed        chan context.Context
	asked, running int
}

func (a *answering) WriteHeader(code int) {
	for range len(a.allowed) {
		a.asked++
		if ctx := <-a.allowed; ctx.Err() == nil {
			a.running++
		}
	}
	a.ResponseRecorder.WriteHeader(code)
}

// A write has ended for admission when it is stored or refused: however long the client takes to
// read the answer, nobody waits for it.
func TestWriteEndsBeforeAnswer(t *testing.T) {
	allowed := make(chan context.Context, 10)
	h := newHarness(t, rest.Options{Admission: writes{allowed}})
	const apply = "application/apply-patch+yaml"
	for _, tt := range []struct {
		method, path, body, media string
		code                      int
	}{
		{"POST", configMaps, `{"metadata":{"name":"a"}}`, "", 201},
		{"POST", configMaps, `{"metadata":{"name":"a"}}`, "", 409},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a"},"data":{"a":"1"}}`, "", 200},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a"},"data":{"a":"1"}}`, "", 200},
		{"PATCH", configMaps + "/a", `{"data":{"a":"2"}}`, "application/merge-patch+json", 200},
		{"PATCH", configMaps + "/b?fieldManager=x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}}`, apply, 201},
		{"PATCH", configMaps + "/b?fieldManager=x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}}`, apply, 200},
		{"PATCH", configMaps + "/b?fieldManager=x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}}`, apply, 200},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, "", 201},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		if tt.media != "" {
			r.Header.Set("Content-Type", tt.media)
		}
		w := &answering{ResponseRecorder: httptest.NewRecorder(), allowed: allowed}
		h.ServeHTTP(w, r)
		if w.Code != tt.code || w.asked != 1 || w.running != 0 {
			t.Errorf("%s %s: %d, admission was asked %d times, %d writes still run: %s", tt.method, tt.path, w.Code, w.asked, w.running, w.Body)
		}
	}
}
