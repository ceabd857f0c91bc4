package admit

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// late is a plugin of upstream's that is made when it is needed: most servers never see a
// write to its resources.
type late struct {
	*plugin
	o        *Options
	upstream func() (admission.Interface, error) // made once
}

// Handles is upstream's, without it.
func (l *late) Handles(op admission.Operation) bool { return slices.Contains(l.operations, op) }

func (l *late) asks(a admission.Attributes) bool {
	return l.needed == nil || l.needed(l.o, a.GetNamespace())
}

// Admit asks upstream's plugin, if it takes part in this pass.
func (l *late) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if !l.asks(a) {
		return nil
	}
	upstream, err := l.upstream()
	if err != nil {
		return err
	}
	if m, ok := upstream.(admission.MutationInterface); ok {
		if l.before != nil {
			l.before(ctx, l.o, a)
		}
		return asStatus(m.Admit(ctx, today(a, o), o))
	}
	return nil
}

// Validate asks upstream's plugin, if it takes part in this pass.
func (l *late) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if !l.asks(a) {
		return nil
	}
	upstream, err := l.upstream()
	if err != nil {
		return err
	}
	if v, ok := upstream.(admission.ValidationInterface); ok {
		return asStatus(v.Validate(ctx, today(a, o), o))
	}
	return nil
}

// asStatus gives an error that is no Status the one that upstream's handlers give it, which
// has no reason: a few plugins return such errors, also several at once.
func asStatus(err error) error {
	if _, ok := err.(errors.APIStatus); ok || err == nil {
		return err
	}
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}
