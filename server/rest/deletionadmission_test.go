package rest_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/server/rest"
)

// keeper refuses to delete objects that are labeled "keep", and says what "warn" says.
type keeper struct{}

var _ admission.ValidationInterface = keeper{}

func (keeper) Handles(op admission.Operation) bool { return op == admission.Delete }

func (keeper) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
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
		return admission.NewForbidden(a, errors.New("not even dry"))
	}
	return admission.NewForbidden(a, errors.New("not yet"))
}

// Admission is asked about a deletion when the object is known to be the right one.
func TestDeletionAdmission(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: keeper{}})
	h.playAll(t, []namedScript{
		{"admission may refuse", `
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
		{"not what is not there, or is not meant", `
			DELETE configmaps/a
			404 NotFound: configmaps "a" not found
			POST configmaps {"metadata":{"name":"a","labels":{"keep":"1"}}}
			201 ConfigMap uid:=metadata.uid
			DELETE configmaps/a {"preconditions":{"uid":"x"}}
			409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated`},
		{"nor what it has let go", `
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
		{"namespaces", `
			POST /api/v1/namespaces {"metadata":{"name":"NS","labels":{"keep":"1"}}}
			201 Namespace uid:=metadata.uid
			DELETE /api/v1/namespaces/NS {"preconditions":{"uid":"x"}}
			409 Conflict: Operation cannot be fulfilled on namespaces "NS": Precondition failed: UID in precondition: x, UID in object meta: ${uid}
			DELETE /api/v1/namespaces/NS
			403 Forbidden: namespaces "NS" is forbidden: not yet`},
		{"collections, whose objects the request does not name", `
			POST configmaps {"metadata":{"name":"a","labels":{"keep":"1"}}}
			201 ConfigMap
			DELETE configmaps
			403 Forbidden: configmaps "Unknown" is forbidden: not yet
			GET configmaps/a
			200 ConfigMap`},
		{"warnings of a collection's objects, each text once", `
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
