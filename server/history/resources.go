package history

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// resources is what the resources changes and versions share. Its methods implement upstream's registry
// interfaces, which describe them.
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
	q.namespaced = true // changes of cluster-scoped objects are in no namespace
	q.after, q.through = revision-1, revision
	q.touched = r.form.values
	var found *v1.Version
	w := r.walk(ctx, q)
	_, err = w.newest(ctx, 1, func(v *v1.Version, row *changelog.HistoryRow) (bool, error) {
		found = v
		return true, w.addData(ctx, v, row)
	})
	if errors.Is(err, changelog.ErrCompacted) || err == nil && found == nil {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	return r.form.one(found), nil
}

func (r *resources) resource() schema.GroupResource {
	name := "changes"
	if r.form.values {
		name = "versions"
	}
	return schema.GroupResource{Group: v1.GroupName, Resource: name}
}

// The most objects in a page.
const (
	mostChanges  = 10_000
	mostVersions = 500
)

// Page implements kind.Pager. Pages are bounded, also for a client that sets no limit.
func (r *resources) Page(ctx context.Context, o *metainternalversion.ListOptions, room kind.Room) (*kind.Page, error) {
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
	w.light = room.Light
	g := &gathered{walk: w, kind: r.served(), room: room.Bytes}
	if q.at != 0 {
		token.From, err = w.state(ctx, token.From, limit, g.take)
	} else {
		token.Below, err = w.newest(ctx, limit, g.take)
	}
	if err != nil {
		return nil, err
	}
	p := &kind.Page{Revision: token.Revision, Entries: g.entries}
	if w.sizes() {
		p.Fill = g.fill
	}
	if token.Below != 0 || token.From != "" {
		p.Next = token.encode()
	}
	return p, nil
}

// served returns the Kind of the resource.
func (r *resources) served() *kind.Kind {
	return r.Kinds.Lookup(r.resource().Group, v1.GroupVersion.Version, r.resource().Resource)
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

// position is where the next page of a list begins. It is no secret, because rights are checked again.
type position struct {
	Revision int64  `json:"rv"`              // of the list
	Below    int64  `json:"below,omitempty"` // for changes: continue below this revision
	From     string `json:"from,omitempty"`  // for a state: continue with this key
}

func (p position) encode() string {
	b, _ := json.Marshal(p) // numbers and a string can be encoded
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
