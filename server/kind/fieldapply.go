package kind

import (
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Apply merges config into live, and records its fields as manager's. Nearly all applies take the short cut: they
// create an object, or they have all the fields that their manager applied before and take none away from another
// manager. Upstream's code does all others, and makes all errors.
func (m *FieldManager) Apply(live, config runtime.Object, manager string, force bool) (runtime.Object, error) {
	if obj := m.applied(live, config, manager); obj != nil {
		return obj, nil
	}
	return m.FieldManager.Apply(live, config, manager, force)
}

// applied is Apply's short cut. It returns nil if upstream has to do the apply.
func (m *FieldManager) applied(live, config runtime.Object, manager string) runtime.Object {
	u, ok := config.(*unstructured.Unstructured)
	if !ok || m.Defaulter == nil || !m.plain(u) || !utf8.ValidString(manager) {
		return nil
	}
	from, err := meta.Accessor(live)
	if err != nil {
		return nil
	}
	c, err := m.configuration(u)
	if err != nil {
		return nil
	}
	entries := from.GetManagedFields()
	own := -1
	var obj runtime.Object
	changed := true
	if len(entries) == 0 {
		if from.GetUID() != "" || from.GetName() != "" || !m.versioned(live) {
			return nil // upstream first makes an entry for the fields that are there
		}
		obj, err = m.hub(u)
	} else if own, ok = m.applierOf(entries, manager); ok && m.keeps(entries, own, c.all) {
		from.SetManagedFields(nil) // they are replaced at the end, and need not be merged
		obj, changed, err = m.merged(live, c, entries, own)
		from.SetManagedFields(entries)
	}
	if obj == nil || err != nil || manager == "kubectl" && clientApplied(obj) {
		return nil
	}
	return m.record(obj, c.owned, entries, own, manager, changed)
}

// record gives obj the entries of an apply of the fields owned. An apply that has not changed the object
// keeps its time.
func (m *FieldManager) record(obj runtime.Object, owned *fieldpath.Set, entries []metav1.ManagedFieldsEntry, own int, manager string, changed bool) runtime.Object {
	to, err := meta.Accessor(obj)
	if err != nil || owned.Empty() {
		return nil
	}
	entries = slices.Clone(entries)
	if own < 0 {
		own, entries = len(entries), append(entries, metav1.ManagedFieldsEntry{
			Manager: orUnknown(manager), Operation: metav1.ManagedFieldsOperationApply, APIVersion: m.Version.String(),
			FieldsType: "FieldsV1", Subresource: m.Subresource,
		})
	}
	if e := &entries[own]; e.FieldsV1 == nil || !m.setOf(e).Equals(owned) {
		json, err := owned.ToJSON()
		if err != nil {
			return nil
		}
		e.FieldsV1 = fieldsV1(json)
	}
	if changed {
		entries[own].Time = now()
	}
	sortEntries(entries)
	to.SetManagedFields(entries)
	return obj
}

// plain tells whether a configuration has the right kind, a name, and no managed fields.
func (m *FieldManager) plain(u *unstructured.Unstructured) bool {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok || u.GroupVersionKind() != m.Version.WithKind(m.Kind) {
		return false
	}
	name, ok := metadata["name"].(string)
	_, fields := metadata["managedFields"]
	return ok && name != "" && !fields
}

// configuration is an applied configuration with the fields that are in it.
type configuration struct {
	typed *typed.TypedValue
	all   *fieldpath.Set // but those that the write resets
	owned *fieldpath.Set // those of all that an entry lists
}

func (m *FieldManager) configuration(u *unstructured.Unstructured) (c configuration, err error) {
	if c.typed, err = m.Types.ObjectToTyped(u); err != nil {
		return c, err
	}
	if c.all, err = c.typed.ToFieldSet(); err != nil {
		return c, err
	}
	if m.Resets != nil {
		c.all = m.Resets.Filter(c.all)
	}
	c.owned = c.all.Difference(nobodys)
	return c, nil
}

// applierOf is the index of manager's entry of applies, -1 if there is none. ok is false if an entry
// is of another version, or if encoding it again would change it.
func (m *FieldManager) applierOf(entries []metav1.ManagedFieldsEntry, manager string) (own int, ok bool) {
	manager = orUnknown(manager)
	own, version := -1, m.Version.String()
	for i := range entries {
		e := &entries[i]
		if e.APIVersion != version || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil {
			return -1, false
		}
		if e.Operation != metav1.ManagedFieldsOperationApply && e.Operation != metav1.ManagedFieldsOperationUpdate {
			return -1, false
		}
		if known := knownSetOf(e); known == nil || !known.canonical() {
			return -1, false
		}
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == m.Subresource {
			if own >= 0 {
				return -1, false
			}
			own = i
		}
	}
	return own, true
}

// keeps tells whether all, the fields of a configuration, include those of the entry own. Then the apply removes
// nothing, because upstream removes only fields that the manager applied before and no longer applies.
func (m *FieldManager) keeps(entries []metav1.ManagedFieldsEntry, own int, all *fieldpath.Set) bool {
	return own < 0 || m.setOf(&entries[own]).Difference(all).Empty()
}

// merged is live with the configuration, nil if that changes a field of another manager. changed tells
// whether it differs from live.
func (m *FieldManager) merged(live runtime.Object, c configuration, entries []metav1.ManagedFieldsEntry, own int) (obj runtime.Object, changed bool, err error) {
	was, err := m.typed(live)
	if err != nil {
		return nil, false, err
	}
	merged, err := was.Merge(c.typed)
	if err != nil {
		return nil, false, err
	}
	if ok, err := m.othersKeep(was, merged, entries, own); err != nil || !ok {
		return nil, false, err
	}
	if value.EqualsUsing(value.NewFreelistAllocator(), was.AsValue(), merged.AsValue()) {
		if own < 0 {
			return nil, false, nil // upstream makes an entry without a time
		}
		return live.DeepCopyObject(), false, nil
	}
	if obj, err = m.Types.TypedToObject(merged); err == nil {
		obj, err = m.hub(obj)
	}
	return obj, true, err
}

// othersKeep tells whether all entries but own stay as they are.
func (m *FieldManager) othersKeep(was, merged *typed.TypedValue, entries []metav1.ManagedFieldsEntry, own int) (bool, error) {
	var comparison *typed.Comparison
	for i := range entries {
		set := m.setOf(&entries[i])
		if !upToDate(set, was) {
			return false, nil
		}
		if i == own {
			continue
		}
		if comparison == nil {
			var err error
			if comparison, err = was.Compare(merged); err != nil {
				return false, err
			}
			comparison = comparison.FilterFields(m.Resets)
		}
		if touches(comparison, set, none) {
			return false, nil
		}
	}
	return true, nil
}

// hub converts an object in any form to hub form, with defaults.
func (m *FieldManager) hub(obj runtime.Object) (runtime.Object, error) {
	versioned, err := m.Converter.ConvertToVersion(obj, m.Version)
	if err != nil {
		return nil, err
	}
	m.Defaulter.Default(versioned)
	return m.Converter.ConvertToVersion(versioned, m.Hub)
}

// versioned tells whether an object is in the version, and not in hub form, which has zeros where the
// version has nothing.
func (m *FieldManager) versioned(obj runtime.Object) bool {
	same, err := m.Converter.ConvertToVersion(obj, m.Version)
	return err == nil && same == obj
}

// clientApplied tells whether kubectl has once applied the object without the server's help. Upstream
// then keeps that annotation up to date.
func clientApplied(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err != nil || m.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != ""
}
