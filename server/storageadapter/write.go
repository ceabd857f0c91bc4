package storageadapter

import (
	"bytes"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Create stores a new object.
func (o *objects) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	if version, err := o.Versioner().ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	value, err := o.kind().Codec.Encode(obj)
	if err != nil {
		return err
	}
	e, err := o.store.Commit(ctx, sqlstore.Change{Key: key, Value: value})
	var conflict *sqlstore.ConflictError
	if errors.As(err, &conflict) {
		return storage.NewKeyExistsError(o.upstreamKey(key), 0)
	} else if err != nil {
		return err
	}
	return o.give(out, e)
}

// GuaranteedUpdate changes an object by update, again and again until nobody else was
// faster. What update leaves as it was is not stored anew.
func (o *objects) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	return o.settle(ctx, key, func(current *sqlstore.Entry) error {
		obj, err := o.read(key, current, ignoreNotFound)
		if err != nil {
			return refusal{err}
		}
		if err := preconditions.Check(o.upstreamKey(key), obj); err != nil {
			return refusal{err}
		}
		var meta storage.ResponseMeta
		if current != nil {
			meta.ResourceVersion = uint64(current.Revision)
		}
		obj, _, err = update(obj, meta)
		if err != nil {
			return refusal{err}
		}
		e, err := o.replace(ctx, key, current, obj)
		if err != nil {
			return err
		}
		return o.give(out, e)
	})
}

// replace stores obj in the place of the entry current, nil for none.
func (o *objects) replace(ctx context.Context, key string, current *sqlstore.Entry, obj runtime.Object) (*sqlstore.Entry, error) {
	value, err := o.kind().Codec.Encode(obj)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return o.store.Commit(ctx, sqlstore.Change{Key: key, Value: value})
	}
	if bytes.Equal(object.Splice(value, current.Revision), current.Value) {
		return o.store.Refresh(ctx, current)
	}
	return o.store.Commit(ctx, sqlstore.Change{Key: key, Expect: current.Revision, Value: value})
}

// Delete removes an object. out becomes its last state, with the revision of its end.
func (o *objects) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	return o.settle(ctx, key, func(current *sqlstore.Entry) error {
		obj, err := o.read(key, current, false)
		if err != nil {
			return refusal{err}
		}
		if err := preconditions.Check(o.upstreamKey(key), obj); err != nil {
			return refusal{err}
		}
		if err := validate(ctx, obj); err != nil {
			return refusal{err}
		}
		e, err := o.store.Commit(ctx, object.Tombstone(current))
		if err != nil {
			return err
		}
		return o.give(out, e)
	})
}

// refusal is an error that comes from looking at an object.
type refusal struct{ error }

func refused(err error) bool {
	_, ok := err.(refusal)
	return ok
}

// settle tries a write of key until nobody else was faster.
func (o *objects) settle(ctx context.Context, key string, try func(current *sqlstore.Entry) error) error {
	err := o.store.Retry(ctx, key, refused, try)
	if r, ok := err.(refusal); ok {
		return r.error
	}
	return err
}
