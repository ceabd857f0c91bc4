package rest

import (
	"bytes"
	"context"
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/lru"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Controllers apply the same configuration over and over, and nearly always it changes
// nothing. What an apply makes of an object depends on nothing but the object and the
// request, so an apply that changed nothing changes nothing again, until the object has
// another revision.

// rememberedApplies bounds how many are remembered; one takes about 300 bytes.
const rememberedApplies = 8192

// unchanged remembers applies that changed nothing, with the warnings that they gave;
// those of admission are not among them, because it is asked each time.
type unchanged struct{ cache *lru.Cache }

func newUnchanged() *unchanged { return &unchanged{lru.New(rememberedApplies)} }

// applyKey is everything that the outcome of an apply depends on.
type applyKey struct {
	kind            *kind.Kind
	version, sub    string
	key             string
	revision        int64
	manager         string
	force           bool
	fieldValidation string
	body            [sha256.Size]byte
}

func (p *patching) applyKey(current *sqlstore.Entry) applyKey {
	k := applyKey{
		kind: p.q.kind, version: p.q.version, key: current.Key, revision: current.Revision,
		manager: p.options.FieldManager, fieldValidation: fieldValidation(p.options.FieldValidation),
		force: p.options.Force != nil && *p.options.Force, body: p.sum,
	}
	if p.q.sub != nil {
		k.sub = p.q.sub.Name
	}
	return k
}

// again answers an apply that is known to change nothing. known is false if it has to be
// done.
func (p *patching) again(ctx context.Context, current *sqlstore.Entry) (known bool, err error) {
	if p.sum == [sha256.Size]byte{} {
		return false, nil
	}
	warnings, known := p.q.api.unchanged.cache.Get(p.applyKey(current))
	if !known {
		return false, nil
	}
	if p.q.admits(admission.Update) {
		if same, err := p.admitUnchanged(ctx, current); err != nil || !same {
			return err != nil, err
		}
	}
	for _, text := range warnings.([]string) {
		p.q.warn.AddWarning("", text)
	}
	return true, nil
}

// admitUnchanged asks admission about an update that leaves the object as it is. same is
// false if admission changes it.
func (p *patching) admitUnchanged(ctx context.Context, current *sqlstore.Entry) (same bool, err error) {
	q := p.q
	a := &unchangedAttributes{
		Attributes: q.attributes(admission.Update, nil, nil, p.updateOptions(), q.name, dryRun(p.options.DryRun)),
		load:       func() (runtime.Object, error) { return q.load(current) },
	}
	if m, ok := q.api.o.Admission.(admission.MutationInterface); ok {
		answered := q.warn.asking()
		if err := inTime(ctx, m.Admit(ctx, a, objects{q})); err != nil {
			return false, err
		}
		answered()
	}
	if err := q.validate(ctx, a); err != nil || a.err != nil {
		return false, err
	}
	if a.object == nil {
		return true, nil
	}
	value, err := q.encode(a.object)
	return err == nil && bytes.Equal(value, sqlstore.Unsplice(current)), err
}

// unchangedAttributes decodes the object when admission asks for it: most of admission
// doesn't.
type unchangedAttributes struct {
	admission.Attributes
	load        func() (runtime.Object, error)
	object, old runtime.Object
	err         error // of load
}

func (a *unchangedAttributes) GetObject() runtime.Object    { return a.get(&a.object) }
func (a *unchangedAttributes) GetOldObject() runtime.Object { return a.get(&a.old) }

func (a *unchangedAttributes) get(object *runtime.Object) runtime.Object {
	if *object == nil && a.err == nil {
		*object, a.err = a.load()
	}
	return *object
}

// remember is told of an apply that succeeded. What a webhook had to make of it, it may be
// asked to again.
func (p *patching) remember(before, after *sqlstore.Entry) {
	if before == after && !p.mutated && p.sum != [sha256.Size]byte{} {
		p.q.api.unchanged.cache.Add(p.applyKey(before), p.q.warn.own())
	}
}
