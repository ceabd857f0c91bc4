// Package admission has the admission plugins that plinth runs on every write: mutation
// before the rules of the kind, validation after them.
//
// It owns the table of plugins, which of them run and with which configuration, and how
// webhooks are called. Most plugins are upstream's, given listers that read the store. The
// package must not know HTTP: package rest asks it about each write.
package admission

import (
	"context"

	apiadmission "k8s.io/apiserver/pkg/admission"
)

// Chain asks plugins in order; the first error ends it. Plugins that change objects are
// asked in the first pass, Admit; plugins that judge the finished object in the second,
// Validate. A plugin that does both takes part in both passes.
type Chain []apiadmission.Interface

var (
	_ apiadmission.MutationInterface   = Chain(nil)
	_ apiadmission.ValidationInterface = Chain(nil)
)

// Handles tells whether any plugin is interested in op.
func (c Chain) Handles(op apiadmission.Operation) bool {
	for _, plugin := range c {
		if plugin.Handles(op) {
			return true
		}
	}
	return false
}

// Admit is the pass in which plugins may change the object. If a webhook changed it, all
// plugins are asked once more, and of the webhooks those whose reinvocationPolicy says so:
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
func (c Chain) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
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

func (c Chain) admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	for _, plugin := range c {
		m, ok := plugin.(apiadmission.MutationInterface)
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

// Unasked returns a context whose writes no webhook is asked about. It is for a server that
// starts: the webhooks may be waiting for it.
func Unasked(ctx context.Context) context.Context { return context.WithValue(ctx, unaskedKey{}, true) }

func unasked(ctx context.Context) bool { return ctx.Value(unaskedKey{}) != nil }

// Validate is the pass in which plugins may only refuse.
func (c Chain) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	for _, plugin := range c {
		v, ok := plugin.(apiadmission.ValidationInterface)
		if !ok || !plugin.Handles(a.GetOperation()) {
			continue
		}
		if err := v.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
