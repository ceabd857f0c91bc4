package kind

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// FieldManager tracks metadata.managedFields in writes of one version, through one
// subresource, and merges applied configurations. It is upstream's with two short cuts. The
// creator of an object manages all its fields. And most other writes give new values to
// fields that the writer manages already, so that only the time in the writer's entry
// changes.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
type FieldManager struct {
	*managedfields.FieldManager
	// Types and Converter are those of the embedded FieldManager.
	Types     managedfields.TypeConverter
	Converter runtime.ObjectConvertor
	// Version is the apiVersion of the entries that writes make.
	Version     schema.GroupVersion
	Subresource string
	// Resets are the fields that writes reset to their old values, so that a writer does not
	// come to own them. It may be nil.
	Resets fieldpath.Filter
	// Light returns a copy of an object without the fields in Resets. It is set where
	// comparing those fields would be most of the work. Optional.
	Light func(obj runtime.Object) runtime.Object
	// Kind, Hub and Defaulter are those of the embedded FieldManager. They are set where Apply may
	// take its short cut. Optional.
	Kind      string
	Hub       schema.GroupVersion
	Defaulter runtime.ObjectDefaulter
}

// Track records in obj which fields manager changes. live is the object before the write,
// an empty object for a create. If Track fails, obj has the managed fields of live afterwards.
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
		return m.UpdateNoErrors(live, obj, manager) // the client edits managedFields
	}
	// The entries are the same in both objects and need not be compared.
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
	from.SetManagedFields(entries) // upstream reads them from live for a subresource, and if it fails
	to.SetManagedFields(entries)
	return m.UpdateNoErrors(live, obj, manager)
}

// sameOwners returns the new entries of a write after which every field has the managers
// that it had. It returns nil for other writes, and if finding out would take as much work
// as upstream's code does.
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

// firstOwner returns the entry of the creator of an object; nil if upstream has to make it.
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
		Time: now(), FieldsType: "FieldsV1", FieldsV1: fieldsV1(json), Subresource: m.Subresource,
	}}
}

func fieldsV1(json []byte) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	f.SetRawBytes(json)
	return f
}

// compare compares an object before and after a write; live is from as a typed value.
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

// touches reports whether a write changes a field of a set other than those in other.
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

// none is the empty set.
var none = fieldpath.NewSet()

// taken are the fields that a write changes, which its writer manages afterwards.
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

// nobodys are the fields that no manager owns: upstream leaves them out of every entry (stripMeta).
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

// entryOf is the index of manager's entry of updates. It is -1 if there is none, or if an
// entry is of another version: that entry would have to be compared in its own version.
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

// orUnknown is the manager's name, or upstream's name for writers without one.
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

// sets caches the decoded sets of entries by their JSON: most objects share few shapes.
var sets = lru.New(512)

// largestSet is the longest JSON of a set that is cached, in bytes.
const largestSet = 4096

// knownSet is the decoded set of an entry. canonical tells whether encoding it gives the same JSON.
type knownSet struct {
	*fieldpath.Set
	canonical func() bool
}

// knownSetOf decodes the fields of an entry; nil if they cannot be decoded.
func knownSetOf(e *metav1.ManagedFieldsEntry) *knownSet {
	text := e.FieldsV1.GetRawString()
	if known, ok := sets.Get(text); ok {
		return known.(*knownSet)
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(text)); err != nil || set.Empty() {
		return nil
	}
	known := &knownSet{set, sync.OnceValue(func() bool {
		json, err := set.ToJSON()
		return err == nil && string(json) == text
	})}
	if len(text) <= largestSet {
		sets.Add(text, known)
	}
	return known
}

// setOf is the set of knownSetOf.
func (m *FieldManager) setOf(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	if known := knownSetOf(e); known != nil {
		return known.Set
	}
	return nil
}

// upToDate reports whether the lists and maps of a set have the same kind in the schema as
// when the set was made.
func upToDate(set *fieldpath.Set, live *typed.TypedValue) bool {
	other, err := typed.ReconcileFieldSetWithSchema(set, live)
	return err == nil && other == nil
}

// stamped returns entries in upstream's order, with the present time in the entry own.
func stamped(entries []metav1.ManagedFieldsEntry, own int) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	entries[own].Time = now()
	sortEntries(entries)
	return entries
}

// sortEntries puts entries of one version into upstream's order.
func sortEntries(entries []metav1.ManagedFieldsEntry) {
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
}

func now() *metav1.Time { return &metav1.Time{Time: time.Now().UTC()} }

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
