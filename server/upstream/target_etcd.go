package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// etcdTarget writes to a running etcd. Keys get new revisions.
type etcdTarget struct {
	client  *clientv3.Client
	prefix  string
	leases  *eventLeases
	granted []clientv3.LeaseID
	done    []batch
	// pending was sent without an answer, so it may have been written.
	pending  []Item
	revision int64
}

// batch is what one transaction has written.
type batch struct {
	keys     []string
	revision int64
}

// By default, an etcd accepts 128 changes in a transaction, and requests of 1.5 MiB.
const (
	batchKeys  = 128
	batchBytes = 1 << 20
)

// NotEmptyError means that an etcd already has keys.
type NotEmptyError struct {
	Keys   int64
	Prefix string
}

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("it has %d keys below %s already", e.Keys, e.Prefix)
}

// ToEtcd returns a target that writes to an etcd, which must have no keys below the layout's prefix.
func ToEtcd(ctx context.Context, e Etcd, l *Layout) (_ Target, closeTarget func() error, err error) {
	c, err := e.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := &etcdTarget{client: c, prefix: l.Prefix()}
	t.leases = newEventLeases(t.grant)
	if err := t.checkEmpty(ctx); err != nil {
		c.Close()
		return nil, nil, err
	}
	return t, c.Close, nil
}

func (t *etcdTarget) checkEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	got, err := t.client.Get(ctx, t.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read from etcd: %w", err)
	}
	if got.Count > 0 {
		return &NotEmptyError{got.Count, t.prefix}
	}
	return nil
}

func (t *etcdTarget) grant(ctx context.Context, seconds int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	got, err := t.client.Grant(ctx, seconds)
	if err != nil {
		return 0, explainEtcd(err)
	}
	t.granted = append(t.granted, got.ID)
	return int64(got.ID), nil
}

func (t *etcdTarget) Put(ctx context.Context, items []Item) error {
	for len(items) > 0 {
		n, size := 1, len(items[0].Value)
		for n < len(items) && n < batchKeys && size+len(items[n].Value) <= batchBytes {
			size += len(items[n].Value)
			n++
		}
		if err := t.putBatch(ctx, items[:n]); err != nil {
			return fmt.Errorf("write to etcd: %w", err)
		}
		items = items[n:]
	}
	return nil
}

// putBatch writes keys in one transaction, if none of them exists.
func (t *etcdTarget) putBatch(ctx context.Context, items []Item) error {
	var absent []clientv3.Cmp
	var puts []clientv3.Op
	keys := make([]string, len(items))
	for i, item := range items {
		lease, err := t.leases.of(ctx, item.Expires)
		if err != nil {
			return err
		}
		keys[i] = item.Key
		absent = append(absent, clientv3.Compare(clientv3.CreateRevision(item.Key), "=", 0))
		puts = append(puts, clientv3.OpPut(item.Key, string(item.Value), clientv3.WithLease(clientv3.LeaseID(lease))))
	}
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	t.pending = items
	got, err := t.client.Txn(ctx).If(absent...).Then(puts...).Commit()
	if err == nil || refused(err) {
		t.pending = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", items[0].Key, explainEtcd(err))
	}
	if !got.Succeeded {
		return fmt.Errorf("somebody else has written %s or a key after it; stop the kube-apiservers of the etcd until the export has ended", items[0].Key)
	}
	t.done = append(t.done, batch{keys, got.Header.Revision})
	t.revision = got.Header.Revision
	return nil
}

// refused reports whether an etcd has refused a change, so that it has certainly not made it.
func refused(err error) bool {
	var e rpctypes.EtcdError
	// An etcd applies the change that exceeds its quota, and returns this error nevertheless (etcd's
	// quotaApplierV3).
	if !errors.As(err, &e) || errors.Is(err, rpctypes.ErrNoSpace) {
		return false
	}
	switch e.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return false
	}
	return true
}

// explainEtcd adds to an error of an etcd what to do about it.
func explainEtcd(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: raise --quota-backend-bytes of the etcd and disarm its alarm (etcdctl alarm disarm)", err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: raise --max-request-bytes of the etcd", err)
	}
	return err
}

func (t *etcdTarget) Finish(context.Context, int64) (int64, error) {
	t.done = nil
	return t.revision, nil
}

// ErrLeft means that a failed export has left objects in its target.
var ErrLeft = errors.New("a part of the objects is left in the etcd")

// abandonPatience is how long an etcd may take to remove the written keys.
const abandonPatience = 30 * time.Second

// Abandon removes the keys that are unchanged since they were written. It leaves keys that others have
// changed.
func (t *etcdTarget) Abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, abandonPatience)
	defer cancel()
	err := t.removePending(ctx)
	for _, b := range t.done {
		if err == nil {
			err = t.remove(ctx, b)
		}
	}
	for _, lease := range t.granted {
		if err == nil {
			_, err = t.client.Revoke(ctx, lease)
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				err = nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%w, because it could not be removed: %w; remove it: etcdctl del --prefix %s", ErrLeft, err, t.prefix)
	}
	return nil
}

func (t *etcdTarget) remove(ctx context.Context, b batch) error {
	var ours []clientv3.Cmp
	var deletes []clientv3.Op
	for _, key := range b.keys {
		ours = append(ours, clientv3.Compare(clientv3.ModRevision(key), "=", b.revision))
		deletes = append(deletes, clientv3.OpDelete(key))
	}
	got, err := t.client.Txn(ctx).If(ours...).Then(deletes...).Commit()
	if err != nil || got.Succeeded || len(b.keys) == 1 {
		return err
	}
	for _, key := range b.keys {
		if err := t.remove(ctx, batch{[]string{key}, b.revision}); err != nil {
			return err
		}
	}
	return nil
}

// removePending removes the unchanged keys of a transaction that was not answered.
func (t *etcdTarget) removePending(ctx context.Context) error {
	for _, item := range t.pending {
		same := clientv3.Compare(clientv3.Value(item.Key), "=", string(item.Value))
		if _, err := t.client.Txn(ctx).If(same).Then(clientv3.OpDelete(item.Key)).Commit(); err != nil {
			return err
		}
	}
	return nil
}
