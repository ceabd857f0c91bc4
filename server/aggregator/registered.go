package aggregator

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

// The label says how the server keeps an APIService that it has made: it is created and
// corrected once at the start, or always. An object without the label is the user's own
// (kube-aggregator/pkg/controllers/autoregister).
const (
	managedLabel = "kube-aggregator.kubernetes.io/automanaged"
	onStart      = "onstart"
	always       = "true"
)

// The priorities of the group versions of custom resources, as upstream: behind nearly all
// others, and equal, so that names decide among them (controller/crdregistration).
const (
	customGroupPriority   = 1000
	customVersionPriority = 100
)

// reconcile brings the APIService of that name in line with what is served.
func (a *APIServices) reconcile(ctx context.Context, name string) error {
	is, err := a.present(name)
	if err != nil {
		return err
	}
	// The definitions are read after the object, so they include the one it was made for.
	want, err := a.wanted(ctx, name)
	if err != nil {
		return err
	}
	if err := a.register(ctx, name, is, want); err != nil && !reconcile.Overtaken(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	a.mu.Lock()
	a.done[name] = true
	a.mu.Unlock()
	return nil
}

// present returns the stored APIService of that name, nil if there is none.
func (a *APIServices) present(name string) (*apiregistration.APIService, error) {
	e := a.config.Store.Get(apiServicePrefix + name)
	if e == nil {
		return nil, nil
	}
	return decodeAPIService(e)
}

// wanted returns the APIService that should have that name, nil if nothing of the group
// version is served.
func (a *APIServices) wanted(ctx context.Context, name string) (*apiregistration.APIService, error) {
	if own := a.own[name]; own != nil {
		return labeled(own, onStart), nil
	}
	version, group, _ := strings.Cut(name, ".")
	served := false
	_, err := lister.Read(ctx, a.config.Store, custom.DefinitionPrefix, func(ev *sqlstore.Event) {
		if _, of, _ := strings.Cut(custom.DefinitionName(ev.Entry), "."); of == group && !served {
			served = slices.Contains(servedVersions(ev.Entry), version)
		}
	})
	if err == nil && !served {
		err = a.undefined(group)
	}
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

// undefined returns an error if a definition of the group cannot be read: nobody knows which versions are served.
func (a *APIServices) undefined(group string) error {
	bad := a.config.Store.Unreadable(custom.DefinitionPrefix)
	if bad == nil {
		return nil
	}
	for _, u := range bad.Objects {
		if _, of, _ := strings.Cut(strings.TrimPrefix(u.Key, custom.DefinitionPrefix), "."); of == group {
			return u
		}
	}
	return nil
}

func labeled(s *apiregistration.APIService, managed string) *apiregistration.APIService {
	s = s.DeepCopy()
	s.Labels = map[string]string{managedLabel: managed}
	return s
}

// register decides, from what is stored and what is wanted, what to write, as upstream.
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

// keeps tells whether the server may change a stored object.
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

// mend deletes an object that is not wanted, and corrects the spec of one that is.
func (a *APIServices) mend(ctx context.Context, is, want *apiregistration.APIService) error {
	if want == nil {
		return a.api.APIServices().Delete(ctx, is.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(is.UID))})
	}
	is.Spec = want.Spec
	_, err := a.api.APIServices().Update(ctx, is, metav1.UpdateOptions{})
	return err
}

// markLocal sets the condition Available of an object that names no Service. It has it from
// its creation, unless it named a Service before or somebody wrote its status.
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
