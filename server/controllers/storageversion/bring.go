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

// bring writes an object that is out of date. done says that the try has ended: with err, with a failed migration, or
// because nobody wants it any more.
func (g *migration) bring(ctx context.Context, k *kind.Kind, e *sqlstore.Entry) (done bool, err error) {
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
	if !g.wanted() {
		return true, nil
	}
	err = g.write(ctx, k, e)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case err == nil:
		g.left--
	case (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && g.replaced(e): // by somebody else, or deleted
		g.left--
	case apierrors.IsNotFound(err): // the namespace, perhaps
		g.note(err)
	case mayPass(err):
		return true, g.retryLater(ctx, err)
	default:
		return true, g.failAt(ctx, err)
	}
	return false, g.rest(ctx, leastRest)
}

// replaced tells whether an entry is no longer what the store has of its key.
func (g *migration) replaced(e *sqlstore.Entry) bool {
	now := g.config.Store.Get(e.Key)
	return now == nil || now.Revision != e.Revision
}

// mayPass tells whether the same request may succeed later. What is no answer of the API has kept the request from it.
func mayPass(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}

// outdated tells whether a write that changes nothing would store the object all the same: it is in another version,
// defaults have been added to its type, or it is encrypted with another key. For a custom resource, whose conversion may
// be a request to a webhook, the write is to tell whether defaults were added. A *kind.UndecodableError is about
// this object alone.
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
