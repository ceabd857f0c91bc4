package storageversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// rewrite writes an object that is out of date. done reports that there is no further try: the write
// succeeded, the migration failed with err, or somebody has deleted the migration.
func (g *migration) rewrite(ctx context.Context, k *kind.Kind, e *sqlstore.Entry) (done bool, err error) {
	stale, err := g.outdated(ctx, k, e)
	if undecodable := (*kind.UndecodableError)(nil); errors.As(err, &undecodable) {
		g.note(err)
		return false, nil
	} else if err != nil {
		return true, err
	}
	if !stale {
		g.left--
		return false, nil
	}
	if !g.exists() {
		return true, nil
	}
	err = g.write(ctx, k, e)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case err == nil:
		g.left--
	case (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && g.replaced(e): // somebody has rewritten or deleted the object
		g.left--
	case apierrors.IsNotFound(err): // for example, the namespace is missing
		g.note(err)
	case isTransient(err):
		return true, g.retryLater(ctx, err)
	default:
		return true, g.failAt(ctx, err)
	}
	return false, g.rest(ctx, leastRest)
}

// replaced reports whether the store has another version of the object, or none.
func (g *migration) replaced(e *sqlstore.Entry) bool {
	now := g.config.Store.Get(e.Key)
	return now == nil || now.Revision != e.Revision
}

// isTransient reports whether the same request may succeed later. An error that is not an answer of the API
// is transient.
func isTransient(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}

// outdated reports whether a write without changes would store the object anyway: because it is stored in
// another version, because its type has got defaults, or because it is encrypted with another key. For a
// custom resource, whose conversion may need a request to a webhook, the write itself finds out whether
// defaults were added. The error is a *kind.UndecodableError if only this object is affected.
func (g *migration) outdated(ctx context.Context, k *kind.Kind, e *sqlstore.Entry) (bool, error) {
	if k.Custom == nil {
		obj, err := k.Codec.Load(e.Value)
		if err != nil {
			return false, fmt.Errorf("unable to decode key %q: %w", e.Key, err)
		}
		value, err := k.Codec.Encode(obj)
		if err != nil || !bytes.Equal(object.Splice(value, e.Revision), e.Value) {
			return true, nil
		}
	} else if k.Stale(e.Value, e.Revision, e.At) {
		return true, nil
	}
	return g.config.Store.Outdated(ctx, e)
}

// identity is a patch that changes nothing.
type identity struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// write patches the object as upstream's controller does.
func (g *migration) write(ctx context.Context, k *kind.Kind, e *sqlstore.Entry) error {
	var patch identity
	version := k.Versions[0].Name
	patch.APIVersion, patch.Kind = k.GVK(version).ToAPIVersionAndKind()
	patch.Metadata.ResourceVersion = strconv.FormatInt(e.Revision, 10)
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	namespace, name := k.SplitKey(e.Key)
	_, err = g.config.Objects.Resource(k.GroupResource().WithVersion(version)).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: names.StorageVersionMigratorController})
	return err
}
