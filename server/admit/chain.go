// Package admit holds the admission plugins that plinth runs on every write, ahead of
// the rules of the kind (mutation) and after them (validation).
package admit

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// Chain asks plugins in order; the first error ends it. Plugins that change objects are
// asked in the first pass, Admit, and those that judge the finished object in the
// second, Validate. One that does both takes part in both.
type Chain []admission.Interface

var (
	_ admission.MutationInterface   = Chain(nil)
	_ admission.ValidationInterface = Chain(nil)
)

// Handles tells whether any plugin is interested in op.
func (c Chain) Handles(op admission.Operation) bool {
	for _, plugin := range c {
		if plugin.Handles(op) {
			return true
		}
	}
	return false
}

// Admit is the pass in which plugins may change the object. If a webhook did so, all are
// asked once more; of webhooks those that want to be, see reinvocationPolicy in
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
func (c Chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := c.admit(ctx, a, o); err != nil {
		return err
	}
	r := a.GetReinvocationContext()
	if !r.ShouldReinvoke() {
		return nil
	}
	r.SetIsReinvoke()
	return c.admit(ctx, a, o)
}

func (c Chain) admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, plugin := range c {
		m, ok := plugin.(admission.MutationInterface)
		if !ok || !plugin.Handles(a.GetOperation()) {
			continue
		}
		if err := m.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}

type unaskedKey struct{}

// Unasked returns a context whose writes no webhook is asked about: those of a server that
// starts, because the webhooks may be waiting for it.
func Unasked(ctx context.Context) context.Context { return context.WithValue(ctx, unaskedKey{}, true) }

func unasked(ctx context.Context) bool { return ctx.Value(unaskedKey{}) != nil }

// Validate is the pass in which plugins may only refuse.
func (c Chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, plugin := range c {
		v, ok := plugin.(admission.ValidationInterface)
		if !ok || !plugin.Handles(a.GetOperation()) {
			continue
		}
		if err := v.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
