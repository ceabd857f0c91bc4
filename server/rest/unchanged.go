package rest

import (
	"bytes"
	"context"
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/lru"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Controllers apply the same configuration over and over, and nearly always it changes nothing. The result of an apply
// depends only on the object and the request. So an apply that changed nothing will change nothing again, as long as
// the object has the same revision.

// rememberedApplies bounds the number of remembered applies. Each takes about 300 bytes.
const rememberedApplies = 8192

// unchanged remembers applies that changed nothing, with their warnings. Warnings of admission
// are not remembered, because admission is asked each time.
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
	type_           types.PatchType
	body            [sha256.Size]byte
}

func (p *patching) applyKey(current *sqlstore.Entry) applyKey {
	return applyKey{
		kind: p.q.kind, version: p.q.version, sub: p.q.subresource(), key: current.Key, revision: current.Revision,
		manager: p.options.FieldManager, fieldValidation: fieldValidation(p.options.FieldValidation),
		force: p.options.Force != nil && *p.options.Force, type_: p.type_, body: p.sum,
	}
}

// again tells whether an apply is known to change nothing, and if so repeats its warnings.
func (p *patching) again(ctx context.Context, current *sqlstore.Entry) (known bool, err error) {
	warnings, known := p.q.api.unchanged.cache.Get(p.applyKey(current))
	if !known {
		return false, nil
	}
	if (admitter{p.q}).handles(apiadmission.Update) {
		if same, err := p.admitUnchanged(ctx, current); err != nil || !same {
			return err != nil, err
		}
	}
	for _, text := range warnings.([]string) {
		p.q.warn.AddWarning("", text)
	}
	return true, nil
}

// admitUnchanged asks admission about an update that leaves the object as it is. same is false if
// admission changes the object.
func (p *patching) admitUnchanged(ctx context.Context, current *sqlstore.Entry) (same bool, err error) {
	q, ask := p.q, admitter{p.q}
	a := &unchangedAttributes{
		Attributes: ask.attributes(apiadmission.Update, nil, nil, p.updateOptions(), q.name, dryRun(p.options.DryRun)),
		load:       func() (runtime.Object, error) { return q.load(q.ctx, current) },
	}
	if m, ok := q.admission.(apiadmission.MutationInterface); ok {
		answered := q.warn.AskAdmission()
		if err := inTime(ctx, m.Admit(ctx, a, ask)); err != nil {
			return false, err
		}
		answered()
	}
	if err := ask.validate(ctx, a); err != nil || a.err != nil {
		return false, err
	}
	if a.object == nil {
		return true, nil
	}
	value, err := q.encode(q.ctx, a.object)
	return err == nil && bytes.Equal(value, object.Unsplice(current)), err
}

// unchangedAttributes decodes the object when a plugin asks for it. Most plugins do not.
type unchangedAttributes struct {
	apiadmission.Attributes
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

// noteMutation notes that a webhook has changed the outcome of an apply.
func (p *patching) noteMutation(a apiadmission.Attributes) {
	p.mutated = a.GetReinvocationContext().ShouldReinvoke()
}

// remember remembers an apply that has changed nothing. An apply whose outcome a webhook has
// changed is not remembered, because the webhook may decide otherwise next time.
func (p *patching) remember(before, after *sqlstore.Entry) {
	if before == after && !p.mutated {
		p.q.api.unchanged.cache.Add(p.applyKey(before), p.q.warn.BesidesAdmission())
	}
}
