package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// What plugins decide by may be unreadable: it cannot be decrypted, or is damaged. Nobody knows then what it forbids,
// or which default it is, so that what it may concern is refused. The listers of plugins leave such
// objects out; a plugin that gets an object by its name gets an error from them.

// rules are the objects of a resource by which a plugin decides.
type rules struct {
	prefix     string
	namespaced bool // those of the write's namespace count
}

// readable returns an error if one of the rules about a write is unreadable.
func (r *rules) readable(ctx context.Context, store *sqlstore.Store, a apiadmission.Attributes) error {
	if r == nil || unasked(ctx) {
		return nil
	}
	prefix := r.prefix
	if r.namespaced {
		prefix += a.GetNamespace() + "/"
	}
	return notReady(lister.Unreadable(store, prefix))
}

// notReady is kube-apiserver's answer while it has not read what decides; nil for nil.
func notReady(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewInternalError(fmt.Errorf("not yet ready to handle request: %w", err))
}
