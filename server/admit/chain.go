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

// Admit is the pass in which plugins may change the object.
func (c Chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
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
