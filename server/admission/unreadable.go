package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// An object by which plugins decide may be unreadable: it cannot be decrypted, or is damaged. Then it is not known what
// the object forbids, or which default it sets, so every write that it may concern is refused. The listers of plugins
// leave such objects out of lists, and return an error for a get.

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

// notReady is kube-apiserver's answer as long as it has not read the objects by which a plugin decides; nil for nil.
func notReady(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewInternalError(fmt.Errorf("not yet ready to handle request: %w", err))
}
