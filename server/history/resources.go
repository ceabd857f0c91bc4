package history

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/plinth-io/plinth/server/history/v1"
)

// resources are what changes and versions have in common. Upstream's interfaces of a registry say what
// the methods are for.
type resources struct {
	columns
	Options
	form *form
}

type changes struct{ resources }

type versions struct{ resources }

// GetSingularName implements rest.SingularNameProvider.
func (*changes) GetSingularName() string { return "change" }

// GetSingularName implements rest.SingularNameProvider.
func (*versions) GetSingularName() string { return "version" }

// NewList implements rest.Lister.
func (r *resources) NewList() runtime.Object { return r.form.newList() }

// Get implements rest.Getter.
func (r *resources) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	missing := apierrors.NewNotFound(r.resource(), name)
	revision, err := strconv.ParseInt(name, 10, 64)
	if err != nil || decimal(revision) != name {
		return nil, missing
	}
	q, err := r.parse(ctx, nil)
	if err == nil {
		_, err = r.Store.Sync(ctx)
	}
	if err != nil {
		return nil, err
	}
	q.namespaced = true // a change of a cluster-scoped object is in no namespace
	q.after, q.through = revision-1, revision
	found, _, err := r.walk(ctx, q).newest(ctx, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, missing
	}
	return r.form.one(&found[0]), nil
}

func (r *resources) resource() schema.GroupResource {
	name := "changes"
	if r.form.values {
		name = "versions"
	}
	return schema.GroupResource{Group: v1.GroupName, Resource: name}
}

// The most objects of one page.
const (
	mostChanges  = 10_000
	mostVersions = 500
)

// List implements rest.Lister. Pages are bounded, also for a client that sets no limit.
func (r *resources) List(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	at, err := r.Store.Sync(ctx)
	if err != nil {
		return nil, err
	}
	q, err := r.parse(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Continue == "" {
		r.warnOfEnd(ctx, &q)
	}
	token := position{Revision: at}
	if o.Continue != "" {
		if token, err = decodePosition(o.Continue); err != nil {
			return nil, err
		}
		if token.Below != 0 {
			q.through = min(q.through, token.Below-1)
		}
	}
	w, limit := r.walk(ctx, q), r.limit(o.Limit)
	m := metav1.ListMeta{ResourceVersion: decimal(token.Revision)}
	var found []v1.Version
	if q.at != 0 {
		found, token.From, err = w.state(ctx, token.From, limit)
	} else {
		found, token.Below, err = w.newest(ctx, limit)
	}
	if err != nil {
		return nil, err
	}
	if token.Below != 0 || token.From != "" {
		m.Continue = token.encode()
	}
	return r.form.list(found, m), nil
}

func (r *resources) limit(asked int64) int {
	most := mostChanges
	if r.form.values {
		most = mostVersions
	}
	if asked <= 0 || asked > int64(most) {
		return most
	}
	return int(asked)
}

// position is where a list goes on. It is no secret: what it leads to is checked again.
type position struct {
	Revision int64  `json:"rv"`              // of the list
	Below    int64  `json:"below,omitempty"` // of changes: older than this revision
	From     string `json:"from,omitempty"`  // of a state: this key or one behind it
}

func (p position) encode() string {
	b, _ := json.Marshal(p) // numbers and a string
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodePosition(token string) (p position, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.Revision <= 0 || p.Below < 0 || (p.Below == 0) == (p.From == "") {
		return p, apierrors.NewBadRequest("continue key is not valid: it is not from a list of this resource")
	}
	return p, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
