package definitions

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/reconcile"
)

// reconcileNames grants a definition the names that are free in its group. When the registry
// serves its resources, a second write sets the condition Established, as upstream does:
// clients that see it can create objects at once.
func (d *Definitions) reconcileNames(ctx context.Context, name string) error {
	e := d.config.Store.Get(custom.DefinitionPrefix + name)
	if e == nil {
		return d.reconsider(ctx, name) // its names are free now
	}
	def, err := custom.DefinitionOf(e)
	if err != nil {
		return err
	}
	d.mu.Lock()
	upToDate := d.seen[name] >= e.Revision
	d.mu.Unlock()
	if !upToDate {
		return nil // the change itself queues the name again
	}
	crd := def.CRD.DeepCopy()
	granted, err := d.grant(ctx, crd)
	if err != nil {
		return err
	}
	approved := approve(crd)
	if !granted && !approved && !establish(crd) {
		return nil
	}
	if err := d.statuses.update(ctx, crd); reconcile.Overtaken(err) {
		return nil
	} else if err != nil || !granted {
		return err
	}
	return d.reconsider(ctx, name) // it may have given up names
}

// reconsider queues the definitions of the group that want a name which they do not have.
func (d *Definitions) reconsider(ctx context.Context, name string) error {
	peers, err := d.peers(ctx, name)
	for _, crd := range peers {
		if !equality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) {
			d.names.Add(crd.Name)
		}
	}
	return err
}

// grant gives crd the names that it wants and that no other definition of the group has,
// and says in a condition which it cannot get. It reports whether anything is new.
func (d *Definitions) grant(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (changed bool, err error) {
	if equality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) {
		return false, nil
	}
	peers, err := d.peers(ctx, crd.Name)
	if err != nil {
		return false, err
	}
	names, accepted := grantNames(crd, peers)
	if reflect.DeepEqual(names, crd.Status.AcceptedNames) &&
		apihelpers.IsCRDConditionEquivalent(&accepted, apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)) {
		return false, nil
	}
	crd.Status.AcceptedNames = names
	apihelpers.SetCRDCondition(crd, accepted)
	apihelpers.SetCRDCondition(crd, notEstablished(crd, accepted.Status))
	return true, nil
}

// grantNames decides on each name by itself, as upstream (controller/status): a conflict
// keeps one name from being granted and not the others. The condition tells the last conflict.
func grantNames(crd *apiextensionsv1.CustomResourceDefinition, peers []*apiextensionsv1.CustomResourceDefinition) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	resources, kinds := takenNames(crd, peers)
	want, have := crd.Spec.Names, crd.Status.AcceptedNames
	names := have
	accepted := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason string, err error) {
		accepted.Status, accepted.Reason, accepted.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	one := func(want, have string, taken sets.Set[string], to *string, reason string) {
		if err := free(want, have, taken); err != nil {
			refuse(reason, err)
			return
		}
		*to = want
	}
	one(want.Plural, have.Plural, resources, &names.Plural, "PluralConflict")
	one(want.Singular, have.Singular, resources, &names.Singular, "SingularConflict")
	if !reflect.DeepEqual(want.ShortNames, have.ShortNames) {
		if err := freeShortNames(want.ShortNames, have.ShortNames, resources); err != nil {
			refuse("ShortNamesConflict", err)
		} else {
			names.ShortNames = want.ShortNames
		}
	}
	one(want.Kind, have.Kind, kinds, &names.Kind, "KindConflict")
	one(want.ListKind, have.ListKind, kinds, &names.ListKind, "ListKindConflict")
	names.Categories = want.Categories
	return names, accepted
}

// takenNames returns the names that the definitions of the group have, crd included.
func takenNames(crd *apiextensionsv1.CustomResourceDefinition, peers []*apiextensionsv1.CustomResourceDefinition) (resources, kinds sets.Set[string]) {
	resources, kinds = sets.New[string](), sets.New[string]()
	for _, other := range append(slices.Clone(peers), crd) {
		n := other.Status.AcceptedNames
		resources.Insert(n.Plural, n.Singular).Insert(n.ShortNames...)
		kinds.Insert(n.Kind, n.ListKind)
	}
	return resources, kinds
}

func free(want, have string, taken sets.Set[string]) error {
	if want == have || !taken.Has(want) {
		return nil
	}
	return fmt.Errorf("%q is already in use", want)
}

func freeShortNames(want, have []string, taken sets.Set[string]) error {
	var errs []error
	for _, name := range want {
		if slices.Contains(have, name) {
			continue
		}
		if err := free(name, "", taken); err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// notEstablished returns the condition of a definition whose resources are not served yet.
func notEstablished(crd *apiextensionsv1.CustomResourceDefinition, accepted apiextensionsv1.ConditionStatus) apiextensionsv1.CustomResourceDefinitionCondition {
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
		Reason: "NotAccepted", Message: "not all names are accepted",
	}
	if old := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); old != nil {
		established = *old
	}
	if established.Status != apiextensionsv1.ConditionTrue && accepted == apiextensionsv1.ConditionTrue {
		established.Status = apiextensionsv1.ConditionFalse
		established.Reason, established.Message = "Installing", "the initial names have been accepted"
	}
	return established
}

// establish sets the condition Established if the names are granted, and reports whether
// that changes anything.
func establish(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return false
	}
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
		Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}
	if badBundle(crd) {
		established.Status = apiextensionsv1.ConditionFalse
		established.Reason, established.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	}
	if apihelpers.IsCRDConditionEquivalent(&established, apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)) {
		return false
	}
	apihelpers.SetCRDCondition(crd, established)
	return true
}

func badBundle(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return false
	}
	return len(webhook.ValidateCABundle(field.NewPath(""), c.Webhook.ClientConfig.CABundle)) > 0
}

// approve sets the condition that says whether a definition in one of Kubernetes' own groups
// is approved, and reports whether that changes anything.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2337-k8s.io-group-protection
func approve(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return false
	}
	c := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant}
	state, reason := apihelpers.GetAPIApprovalState(crd.Annotations)
	c.Message = reason
	switch state {
	case apihelpers.APIApproved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Status, c.Reason = apiextensionsv1.ConditionFalse, "UnapprovedAnnotation"
	case apihelpers.APIApprovalInvalid:
		c.Status, c.Reason = apiextensionsv1.ConditionFalse, "InvalidAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Status, c.Reason = apiextensionsv1.ConditionFalse, "MissingAnnotation"
	default:
		c.Status, c.Reason = apiextensionsv1.ConditionUnknown, "UnknownAnnotation"
	}
	if old := apihelpers.FindCRDCondition(crd, c.Type); old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return false
	}
	apihelpers.SetCRDCondition(crd, c)
	return true
}
