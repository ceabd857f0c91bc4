package control

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/sqlstore"
)

// How an APIService that the server made wants to be kept: made or mended once when a
// server starts, or always. Without the label it is its author's own
// (kube-aggregator/pkg/controllers/autoregister).
const (
	managedLabel = "kube-aggregator.kubernetes.io/automanaged"
	onStart      = "onstart"
	always       = "true"
)

// The priorities of all group versions that definitions make, as upstream: behind nearly
// everything, and among themselves by their names (controller/crdregistration).
const (
	customGroupPriority   = 1000
	customVersionPriority = 100
)

// reconcile makes the APIService of that name what it should be.
func (a *APIServices) reconcile(ctx context.Context, name string) error {
	is, err := a.present(name)
	if err != nil {
		return err
	}
	// Read after the object: a server that made it has seen the definition before.
	want, err := a.wanted(ctx, name)
	if err != nil {
		return err
	}
	if err := a.register(ctx, name, is, want); err != nil && !overtaken(err) && !errors.IsAlreadyExists(err) {
		return err
	}
	a.mu.Lock()
	a.done[name] = true
	a.mu.Unlock()
	return nil
}

// present is the APIService of that name as it is stored, nil if there is none.
func (a *APIServices) present(name string) (*apiregistration.APIService, error) {
	e := a.config.Store.Get(apiServicePrefix + name)
	if e == nil {
		return nil, nil
	}
	return decodeAPIService(e)
}

// wanted is the APIService of that name that the server has a reason for, nil if it has
// none.
func (a *APIServices) wanted(ctx context.Context, name string) (*apiregistration.APIService, error) {
	if own := a.own[name]; own != nil {
		return labeled(own, onStart), nil
	}
	version, group, _ := strings.Cut(name, ".")
	served := false
	_, err := readCurrent(ctx, a.config.Store, definitionPrefix, func(ev *sqlstore.Event) {
		if _, of, _ := strings.Cut(definitionName(ev.Entry), "."); of == group && !served {
			served = slices.Contains(servedVersions(ev.Entry), version)
		}
	})
	if err != nil || !served {
		return nil, err
	}
	return labeled(&apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiregistration.APIServiceSpec{
			Group: group, Version: version,
			GroupPriorityMinimum: customGroupPriority, VersionPriority: customVersionPriority,
		},
	}, always), nil
}

func labeled(s *apiregistration.APIService, managed string) *apiregistration.APIService {
	s = s.DeepCopy()
	s.Labels = map[string]string{managedLabel: managed}
	return s
}

// register is upstream's table of what there is and what should be.
func (a *APIServices) register(ctx context.Context, name string, is, want *apiregistration.APIService) error {
	a.mu.Lock()
	done := a.done[name]
	a.mu.Unlock()
	if is == nil {
		if want == nil || done && managed(want) == onStart {
			return nil
		}
		_, err := a.api.APIServices().Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if a.keeps(name, is, want, done) && (want == nil || !reflect.DeepEqual(is.Spec, want.Spec)) {
		return a.mend(ctx, is, want)
	}
	return a.markLocal(ctx, is)
}

// keeps tells whether an object that is there is the server's to change.
func (a *APIServices) keeps(name string, is, want *apiregistration.APIService, done bool) bool {
	switch {
	case done && managed(want) == onStart:
		return false
	case managed(is) == onStart:
		return a.atStart[name] && !done
	}
	return managed(is) == always
}

func managed(s *apiregistration.APIService) string {
	if s == nil {
		return ""
	}
	return s.Labels[managedLabel]
}

// mend deletes what nobody wants, and gives what somebody wants the spec that it should
// have.
func (a *APIServices) mend(ctx context.Context, is, want *apiregistration.APIService) error {
	if want == nil {
		return a.api.APIServices().Delete(ctx, is.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(is.UID))})
	}
	is.Spec = want.Spec
	_, err := a.api.APIServices().Update(ctx, is, metav1.UpdateOptions{})
	return err
}

// markLocal says of one that names no service that it is available, as it is from its
// creation, unless it had a service before or somebody wrote its status.
func (a *APIServices) markLocal(ctx context.Context, is *apiregistration.APIService) error {
	if is.Spec.Service != nil {
		return nil
	}
	before := is.Status.DeepCopy()
	helper.SetAPIServiceCondition(is, helper.NewLocalAvailableAPIServiceCondition())
	if reflect.DeepEqual(&is.Status, before) {
		return nil
	}
	_, err := a.api.APIServices().UpdateStatus(ctx, is, metav1.UpdateOptions{})
	return err
}
