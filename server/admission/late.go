package admission

import (
	"context"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
)

// late is an upstream plugin that is built at its first use. Most servers never see a write to its resources.
type late struct {
	*plugin
	o        *Options
	upstream func() (apiadmission.Interface, error) // made once
}

// Handles answers without building upstream's plugin.
func (l *late) Handles(op apiadmission.Operation) bool { return slices.Contains(l.operations, op) }

func (l *late) asks(a apiadmission.Attributes) bool {
	return (l.concerns == nil || l.concerns(a.GetUserInfo())) && (l.needed == nil || l.needed(l.o, a.GetNamespace()))
}

// readable returns an error if the plugin could not decide about a namespaced object.
func (l *late) readable(ctx context.Context, a apiadmission.Attributes) error {
	if a.GetNamespace() == "" || a.GetOperation() == apiadmission.Delete {
		return nil
	}
	return l.rules.readable(ctx, l.o.Store, a)
}

// Admit asks upstream's plugin, if it takes part in this pass.
func (l *late) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if err := l.readable(ctx, a); err != nil {
		return err
	}
	if !l.asks(a) {
		return nil
	}
	upstream, err := l.upstream()
	if err != nil {
		return err
	}
	if m, ok := upstream.(apiadmission.MutationInterface); ok {
		if l.before != nil {
			l.before(ctx, l.o, a)
		}
		return asStatus(m.Admit(ctx, today(a, o), o))
	}
	return nil
}

// Validate asks upstream's plugin, if it takes part in this pass.
func (l *late) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if err := l.readable(ctx, a); err != nil {
		return err
	}
	if !l.asks(a) {
		return nil
	}
	upstream, err := l.upstream()
	if err != nil {
		return err
	}
	if v, ok := upstream.(apiadmission.ValidationInterface); ok {
		return asStatus(v.Validate(ctx, today(a, o), o))
	}
	return nil
}

// asStatus turns an error that is no Status into the Status that upstream's handlers make of
// it, which has no reason. A few plugins return such errors, some of them aggregates.
func asStatus(err error) error {
	if _, ok := err.(apierrors.APIStatus); ok || err == nil {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}
