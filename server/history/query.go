package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/selectors"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// query is a parsed selection of changes or of a state.
type query struct {
	namespace  string
	namespaced bool // only objects in namespace; if it is empty, cluster-scoped objects
	from, to   string
	one        bool // [from, to) is the key of one object
	after      int64
	through    int64
	at         int64            // the revision of a state; 0: changes
	touched    bool             // versions include the touched fields
	rest       selectors.Fields // the remaining terms
	none       bool             // no change can be selected
}

// compared are the fields whose values selectors compare; the other fields of fieldLabel choose what is read.
var compared = []string{
	v1.FieldResource, v1.FieldKind, v1.FieldName, v1.FieldNamespace, v1.FieldAction, v1.FieldUser, v1.FieldImpersonator,
	v1.FieldVerb, v1.FieldSubresource, v1.FieldManager, v1.FieldAuditID, "metadata.name", "metadata.namespace",
}

var positions = []string{v1.FieldSince, v1.FieldUntil, v1.FieldAt}

// notCompared are the other fields of fieldLabel.
var notCompared = append(slices.Clone(positions), v1.FieldWith)

// fieldLabel accepts the fields that a selector may name.
func fieldLabel(_, label, value string) (string, string, error) {
	if slices.Contains(compared, label) || slices.Contains(notCompared, label) {
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s; there are %s", label, strings.Join(slices.Concat(compared, notCompared), ", "))
}

// parse reads the selectors of a request, whose fields fieldLabel has accepted.
func (r *resources) parse(ctx context.Context, o *metainternalversion.ListOptions) (query, error) {
	q := query{through: changelog.Forever}
	q.namespace = apirequest.NamespaceValue(ctx)
	q.namespaced = q.namespace != ""
	if o == nil {
		return q, nil
	}
	q.none = o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set{})
	if o.FieldSelector == nil {
		return q, nil
	}
	for _, field := range positions {
		if err := r.position(ctx, &q, field, o.FieldSelector.Requirements()); err != nil {
			return q, err
		}
	}
	if err := r.parseWith(&q, o.FieldSelector.Requirements()); err != nil {
		return q, err
	}
	q.rest = selectors.Compile(o.FieldSelector.Requirements(), func(field string) bool { return slices.Contains(notCompared, field) })
	q.none = q.none || q.rest.Never()
	r.applyExact(&q)
	r.narrow(&q)
	return q, nil
}

// parseWith reads the values of the field "with".
func (r *resources) parseWith(q *query, all fields.Requirements) error {
	for _, requirement := range all {
		switch {
		case requirement.Field != v1.FieldWith:
			continue
		case requirement.Operator == selection.NotEquals:
			return apierrors.NewBadRequest(v1.FieldWith + " takes no !=")
		case requirement.Value != v1.WithTouched:
			return apierrors.NewBadRequest(fmt.Sprintf("%s: %q: write %s=%s", v1.FieldWith, requirement.Value, v1.FieldWith, v1.WithTouched))
		case !r.form.values:
			return apierrors.NewBadRequest("changes come without what they touched; ask for versions")
		}
		q.touched = true
	}
	return nil
}

// applyExact moves exact terms from the rest into the ranges that q reads.
func (r *resources) applyExact(q *query) {
	for _, field := range []string{v1.FieldNamespace, "metadata.namespace"} {
		if namespace, ok := q.rest.Exact(field); ok {
			q.none = q.none || q.namespaced && q.namespace != namespace
			q.namespace, q.namespaced = namespace, true
			q.rest = q.rest.Without(field)
		}
	}
	if name, ok := q.rest.Exact("metadata.name"); ok {
		revision, err := strconv.ParseInt(name, 10, 64)
		q.none = q.none || err != nil || revision <= 0
		q.after, q.through = max(q.after, revision-1), min(q.through, revision)
		q.rest = q.rest.Without("metadata.name")
	}
	if resource, ok := q.rest.Exact(v1.FieldResource); ok {
		q.from, q.to = changelog.RangeOf(r.prefix(resource))
		q.rest = q.rest.Without(v1.FieldResource)
	}
}

// prefix returns the prefix of a resource's keys. The resource is written like deployments.apps.
func (r *resources) prefix(resource string) string {
	gr := schema.ParseGroupResource(resource)
	for _, k := range r.Kinds.Set().Kinds {
		if k.GroupResource() == gr {
			return object.Prefix(k.Stored.Group, k.Stored.Resource)
		}
	}
	return object.Prefix(gr.Group, gr.Resource)
}

// narrow reduces the range of keys to those that may be selected.
func (r *resources) narrow(q *query) {
	if kind, ok := q.rest.Exact(v1.FieldKind); ok && q.from == "" {
		q.from, q.to = r.rangeOfKind(kind)
	}
	if q.from == "" || !q.namespaced {
		return
	}
	prefix := q.from
	if q.namespace != "" {
		prefix += q.namespace + "/"
		q.from, q.to = changelog.RangeOf(prefix)
	}
	if name, ok := q.rest.Exact(v1.FieldName); ok && name != "" {
		q.from, q.to, q.one = prefix+name, prefix+name+"\x00", true
	}
}

// allOfObjects reports whether the query selects all changes in its range of an object if it selects one of
// them.
func (q *query) allOfObjects() bool {
	rest := q.rest
	for _, field := range []string{v1.FieldName, v1.FieldKind} {
		rest = rest.Without(field)
	}
	return rest.Empty()
}

// rangeOfKind returns the range of a kind's keys, if exactly one resource has the kind.
func (r *resources) rangeOfKind(kind string) (from, to string) {
	for _, k := range r.Kinds.Set().Kinds {
		if k.Kind != kind {
			continue
		}
		f, t := changelog.RangeOf(object.Prefix(k.Stored.Group, k.Stored.Resource))
		if from != "" && from != f {
			return "", ""
		}
		from, to = f, t
	}
	return from, to
}

// position evaluates the terms of since, until or at. Of several revisions, and of several times, the
// strictest counts.
func (r *resources) position(ctx context.Context, q *query, field string, all fields.Requirements) error {
	m, err := r.moments(field, all)
	if err != nil || m.text == "" {
		return err
	}
	if m.revision != 0 {
		q.setBounds(field, m.revision, m.revision-1)
	}
	if m.time.IsZero() {
		return nil
	}
	revision, err := r.revisionAt(ctx, field, m.time)
	switch {
	case err != nil:
		return err
	case revision == 0 && field == v1.FieldAt:
		return notReached(m.text)
	}
	q.setBounds(field, revision, revision)
	return nil
}

// setBounds applies a term of since, until or at: its revision, or before, the last revision that is not
// selected.
func (q *query) setBounds(field string, revision, before int64) {
	switch field {
	case v1.FieldAt:
		q.at = revision
	case v1.FieldUntil:
		q.through = min(q.through, revision)
	case v1.FieldSince:
		q.after = max(q.after, before)
	}
}

// moments has the strictest revision and the strictest time of one field's terms.
type moments struct {
	text     string // the term; empty: there is none
	revision int64  // 0: none
	time     time.Time
}

func (r *resources) moments(field string, all fields.Requirements) (m moments, err error) {
	for _, requirement := range all {
		if requirement.Field != field {
			continue
		}
		switch {
		case requirement.Operator == selection.NotEquals:
			return m, apierrors.NewBadRequest(field + " takes no !=")
		case field == v1.FieldAt && !r.form.values:
			return m, apierrors.NewBadRequest("changes have no state at a time; ask for versions")
		case field == v1.FieldAt && m.text != "" && m.text != requirement.Value:
			return m, apierrors.NewBadRequest("at selects the state at one moment: write it once")
		}
		revision, at, err := r.moment(field, requirement.Value)
		if err != nil {
			return m, err
		}
		m.text = requirement.Value
		later := field == v1.FieldSince
		if revision != 0 && (m.revision == 0 || (revision > m.revision) == later) {
			m.revision = revision
		}
		if !at.IsZero() && (m.time.IsZero() || at.After(m.time) == later) {
			m.time = at
		}
	}
	return m, nil
}

// notReached is the error for a moment whose state is no longer known.
func notReached(moment string) error {
	return apierrors.NewResourceExpired("the history does not reach back to " + moment)
}

// moment parses a revision or a time.
func (r *resources) moment(field, value string) (revision int64, at time.Time, err error) {
	newest := r.Store.Revision()
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		if n <= 0 || n > newest {
			return 0, at, apierrors.NewBadRequest(fmt.Sprintf("%s: there is no revision %d; the newest is %d", field, n, newest))
		}
		return n, at, nil
	}
	at, err = time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return 0, at, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is no revision and no time; write it like 12345 or %s", field, value, time.Now().UTC().Format(time.RFC3339)))
	}
	if at.After(time.Now()) {
		return 0, at, apierrors.NewBadRequest(fmt.Sprintf("%s: %s is in the future", field, value))
	}
	if at.IsZero() {
		at = at.Add(1) // the zero time means that there is none
	}
	return 0, at, nil
}

// revisionAt returns the newest revision up to a time or, for since, before it.
func (r *resources) revisionAt(ctx context.Context, field string, at time.Time) (int64, error) {
	moment := at.UnixMilli()
	if field == v1.FieldSince {
		moment--
	}
	return r.Store.RevisionAt(ctx, moment)
}
