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
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// query is what a request selects.
type query struct {
	namespace  string
	namespaced bool // only objects of namespace, which is empty for those of the cluster
	from, to   string
	one        bool // [from, to) is one object
	after      int64
	through    int64
	at         int64           // 0: changes are wanted, not a state
	rest       fields.Selector // what else a change must have
	none       bool            // nothing can be selected
}

// compared are the fields that a selector compares; the others of fieldLabel say where to read.
var compared = []string{
	v1.FieldResource, v1.FieldKind, v1.FieldName, v1.FieldNamespace, v1.FieldAction, v1.FieldUser, v1.FieldImpersonator,
	v1.FieldVerb, v1.FieldSubresource, v1.FieldManager, v1.FieldAuditID, "metadata.name", "metadata.namespace",
}

var positions = []string{v1.FieldSince, v1.FieldUntil, v1.FieldAt}

// fieldLabel says which fields a selector may name.
func fieldLabel(_, label, value string) (string, string, error) {
	if slices.Contains(compared, label) || slices.Contains(positions, label) {
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s; there are %s", label, strings.Join(slices.Concat(compared, positions), ", "))
}

// parse reads the selectors of a request, which fieldLabel has seen.
func (r *resources) parse(ctx context.Context, o *metainternalversion.ListOptions) (query, error) {
	q := query{through: sqlstore.Forever, rest: fields.Everything()}
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
	var rest []fields.Selector
	for _, requirement := range o.FieldSelector.Requirements() {
		if !slices.Contains(positions, requirement.Field) && !r.takes(&q, requirement) {
			rest = append(rest, selector(requirement))
		}
	}
	r.narrow(&q, o.FieldSelector)
	q.rest = fields.AndSelectors(rest...)
	return q, nil
}

func selector(r fields.Requirement) fields.Selector {
	if r.Operator == selection.NotEquals {
		return fields.OneTermNotEqualSelector(r.Field, r.Value)
	}
	return fields.OneTermEqualSelector(r.Field, r.Value)
}

// takes says that a requirement is met by where q reads.
func (r *resources) takes(q *query, requirement fields.Requirement) bool {
	if requirement.Operator == selection.NotEquals {
		return false
	}
	switch requirement.Field {
	case v1.FieldNamespace, "metadata.namespace":
		q.none = q.none || q.namespaced && q.namespace != requirement.Value
		q.namespace, q.namespaced = requirement.Value, true
		return true
	case "metadata.name":
		revision, err := strconv.ParseInt(requirement.Value, 10, 64)
		q.none = q.none || err != nil || revision <= 0
		q.after, q.through = max(q.after, revision-1), min(q.through, revision)
		return true
	case v1.FieldResource:
		q.from, q.to = sqlstore.RangeOf(r.prefix(requirement.Value))
		return true
	}
	return false
}

// prefix returns what the keys of a resource, written deployments.apps, begin with.
func (r *resources) prefix(resource string) string {
	gr := schema.ParseGroupResource(resource)
	for _, k := range r.Kinds.Set().Kinds {
		if k.GroupResource() == gr {
			return object.Prefix(k.Stored.Group, k.Stored.Resource)
		}
	}
	return object.Prefix(gr.Group, gr.Resource)
}

// narrow finds the range of keys that may be selected.
func (r *resources) narrow(q *query, s fields.Selector) {
	if kind, ok := s.RequiresExactMatch(v1.FieldKind); ok && q.from == "" {
		q.from, q.to = r.rangeOfKind(kind)
	}
	if q.from == "" || !q.namespaced {
		return
	}
	prefix := q.from
	if q.namespace != "" {
		prefix += q.namespace + "/"
		q.from, q.to = sqlstore.RangeOf(prefix)
	}
	if name, ok := s.RequiresExactMatch(v1.FieldName); ok && name != "" {
		q.from, q.to, q.one = prefix+name, prefix+name+"\x00", true
	}
}

// rangeOfKind returns the keys of a kind, if only one resource has it.
func (r *resources) rangeOfKind(kind string) (from, to string) {
	for _, k := range r.Kinds.Set().Kinds {
		if k.Kind != kind {
			continue
		}
		f, t := sqlstore.RangeOf(object.Prefix(k.Stored.Group, k.Stored.Resource))
		if from != "" && from != f {
			return "", ""
		}
		from, to = f, t
	}
	return from, to
}

// position reads since, until or at.
func (r *resources) position(ctx context.Context, q *query, field string, all fields.Requirements) error {
	for _, requirement := range all {
		if requirement.Field != field {
			continue
		}
		if requirement.Operator == selection.NotEquals {
			return apierrors.NewBadRequest(field + " takes no !=")
		}
		revision, isTime, err := r.revision(ctx, field, requirement.Value)
		if err != nil {
			return err
		}
		switch field {
		case v1.FieldAt:
			if !r.form.values {
				return apierrors.NewBadRequest("changes have no state at a time; ask for versions")
			}
			if revision == 0 {
				return notReached(requirement.Value)
			}
			q.at = revision
		case v1.FieldUntil:
			q.through = min(q.through, revision)
		case v1.FieldSince:
			if !isTime {
				revision--
			}
			q.after = max(q.after, revision)
		}
	}
	return nil
}

// notReached is the error for a moment whose state is not known any more.
func notReached(moment string) error {
	return apierrors.NewResourceExpired("the history does not reach back to " + moment)
}

// revision reads a revision, or a time: of since the newest revision before it, else the newest up to it.
func (r *resources) revision(ctx context.Context, field, value string) (revision int64, isTime bool, err error) {
	newest := r.Store.Revision()
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		if n <= 0 || n > newest {
			return 0, false, apierrors.NewBadRequest(fmt.Sprintf("%s: there is no revision %d; the newest is %d", field, n, newest))
		}
		return n, false, nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return 0, false, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is no revision and no time; write it like 12345 or %s", field, value, time.Now().UTC().Format(time.RFC3339)))
	}
	if t.After(time.Now()) {
		return 0, false, apierrors.NewBadRequest(fmt.Sprintf("%s: %s is in the future", field, value))
	}
	moment := t.UnixMilli()
	if field == v1.FieldSince {
		moment--
	}
	revision, err = r.Store.RevisionAt(ctx, moment)
	return revision, true, err
}
