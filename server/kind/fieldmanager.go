package kind

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// FieldManager keeps metadata.managedFields of writes in one version, through one
// subresource, and merges what is applied. It is upstream's with two short cuts: who
// makes an object manages all that is in it, and most other writes give new values to
// fields that their author manages already, so that nothing but the time in the author's
// entry changes.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
type FieldManager struct {
	*managedfields.FieldManager
	// Types and Converter are those of the embedded FieldManager.
	Types     managedfields.TypeConverter
	Converter runtime.ObjectConvertor
	// Version is that of the entries which writes make.
	Version     schema.GroupVersion
	Subresource string
	// Resets are the fields that writes leave alone, so that nobody comes to own them. It
	// may be nil.
	Resets fieldpath.Filter
	// Light returns a copy of an object that lacks what Resets has anyway, where comparing
	// that would be most of the work. nil: it would not.
	Light func(obj runtime.Object) runtime.Object
}

// Track records in obj what manager changes with it. live is what was there, an empty
// object if nothing was. If that fails, obj has no managed fields afterwards.
func (m *FieldManager) Track(live, obj runtime.Object, manager string) runtime.Object {
	if m.Light == nil {
		return m.track(live, obj, manager)
	}
	to, err1 := meta.Accessor(obj)
	tracked, err2 := meta.Accessor(m.track(m.Light(live), m.Light(obj), manager))
	if err1 != nil || err2 != nil {
		return m.track(live, obj, manager)
	}
	to.SetManagedFields(tracked.GetManagedFields())
	return obj
}

func (m *FieldManager) track(live, obj runtime.Object, manager string) runtime.Object {
	from, err1 := meta.Accessor(live)
	to, err2 := meta.Accessor(obj)
	if err1 != nil || err2 != nil {
		return m.UpdateNoErrors(live, obj, manager)
	}
	entries, given := from.GetManagedFields(), to.GetManagedFields()
	if m.Subresource == "" && given != nil && !reflect.DeepEqual(given, entries) {
		return m.UpdateNoErrors(live, obj, manager) // somebody who edits them
	}
	// What is in both need not be compared.
	from.SetManagedFields(nil)
	defer from.SetManagedFields(entries)
	to.SetManagedFields(nil)
	var short []metav1.ManagedFieldsEntry
	if len(entries) > 0 {
		short = m.sameOwners(live, obj, entries, manager)
	} else if from.GetUID() == "" {
		short = m.firstOwner(live, obj, manager)
	}
	if short != nil {
		setFields(to, short)
		return obj
	}
	if m.Subresource != "" {
		from.SetManagedFields(entries) // upstream takes them from nowhere else then
	}
	to.SetManagedFields(entries)
	return m.UpdateNoErrors(live, obj, manager)
}

// sameOwners returns what becomes of entries if no field gets another manager, loses one
// or appears; nil if that is not so, or if it is too much to tell.
func (m *FieldManager) sameOwners(live, obj runtime.Object, entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	own := m.entryOf(entries, manager)
	if own < 0 {
		return nil
	}
	was, comparison, err := m.compare(live, obj)
	if err != nil {
		return nil
	}
	took := m.taken(comparison)
	comparison = comparison.FilterFields(m.Resets)
	for i := range entries {
		set := m.setOf(&entries[i])
		if set == nil || !upToDate(set, was) {
			return nil
		}
		if i != own && touches(comparison, set, none) || i == own && (touches(comparison, set, took) || !took.Difference(set).Empty()) {
			return nil
		}
	}
	if took.Empty() {
		return entries
	}
	return stamped(entries, own)
}

// firstOwner returns the entry of who makes an object; nil if that is too much to tell.
func (m *FieldManager) firstOwner(empty, obj runtime.Object, manager string) []metav1.ManagedFieldsEntry {
	_, comparison, err := m.compare(empty, obj)
	if err != nil {
		return nil
	}
	took := m.taken(comparison)
	if took.Empty() {
		return nil
	}
	json, err := took.ToJSON()
	if err != nil {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{
		Manager: orUnknown(manager), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: m.Version.String(),
		Time: now(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: json}, Subresource: m.Subresource,
	}}
}

// compare tells what a write changes; live is what it changes, in the manager's version.
func (m *FieldManager) compare(from, to runtime.Object) (live *typed.TypedValue, _ *typed.Comparison, err error) {
	if live, err = m.typed(from); err != nil {
		return nil, nil, err
	}
	next, err := m.typed(to)
	if err != nil {
		return nil, nil, err
	}
	comparison, err := live.Compare(next)
	return live, comparison, err
}

// touches tells whether a write concerns any field of a set, other than those given.
func touches(c *typed.Comparison, set, other *fieldpath.Set) bool {
	for _, fields := range []*fieldpath.Set{c.Modified, c.Added, c.Removed} {
		if fields.Empty() {
			continue
		}
		if both := set.Intersection(fields); !both.Empty() && !both.Difference(other).Empty() {
			return true
		}
	}
	return false
}

// none is no field at all.
var none = fieldpath.NewSet()

// taken are the fields that a write takes for its author.
func (m *FieldManager) taken(c *typed.Comparison) *fieldpath.Set {
	set := c.Modified
	if !c.Added.Empty() {
		set = set.Union(c.Added)
	}
	if m.Resets != nil {
		set = m.Resets.Filter(set)
	}
	return set.Difference(nobodys)
}

// nobodys are the fields that upstream leaves out of every entry.
var nobodys = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// entryOf finds the entry of manager's updates, -1 if there is none or if an entry is of
// another version, which would have to be compared in that version.
func (m *FieldManager) entryOf(entries []metav1.ManagedFieldsEntry, manager string) int {
	manager = orUnknown(manager)
	own, version := -1, m.Version.String()
	for i := range entries {
		e := &entries[i]
		if e.APIVersion != version || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil {
			return -1
		}
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == m.Subresource {
			own = i
		}
	}
	return own
}

// orUnknown is what upstream calls authors who don't say who they are.
func orUnknown(manager string) string {
	if manager == "" {
		return "unknown"
	}
	return manager
}

func (m *FieldManager) typed(obj runtime.Object) (*typed.TypedValue, error) {
	versioned, err := m.Converter.ConvertToVersion(obj, m.Version)
	if err != nil {
		return nil, err
	}
	return m.Types.ObjectToTyped(versioned, typed.AllowDuplicates)
}

// sets has the sets that entries hold, by their JSON: few shapes make up most objects.
var sets = lru.New(512)

// largestSet is how long the JSON of a set that is remembered may be.
const largestSet = 4096

// setOf decodes the fields of an entry; nil if they are none.
func (m *FieldManager) setOf(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	json := string(e.FieldsV1.Raw)
	if set, ok := sets.Get(json); ok {
		return set.(*fieldpath.Set)
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(json)); err != nil || set.Empty() {
		return nil
	}
	if len(json) <= largestSet {
		sets.Add(json, set)
	}
	return set
}

// upToDate tells whether the schema still has a set's lists and maps as they were when the
// set was made.
func upToDate(set *fieldpath.Set, live *typed.TypedValue) bool {
	other, err := typed.ReconcileFieldSetWithSchema(set, live)
	return err == nil && other == nil
}

// stamped returns entries with the present time in one, in upstream's order.
func stamped(entries []metav1.ManagedFieldsEntry, own int) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	entries[own].Time = now()
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		if c := strings.Compare(string(a.Operation), string(b.Operation)); c != 0 {
			return c
		}
		if c := seconds(a.Time) - seconds(b.Time); c != 0 {
			return int(c)
		}
		if c := strings.Compare(a.Manager, b.Manager); c != 0 {
			return c
		}
		return strings.Compare(a.Subresource, b.Subresource)
	})
	return entries
}

func now() *metav1.Time { return &metav1.Time{Time: time.Now().UTC()} }

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
