package upstream

import (
	"context"
	"fmt"
	"time"
)

// eventLeases puts Events that expire within the same minute on one lease, as kube-apiservers do, because
// leases are expensive for an etcd.
type eventLeases struct {
	start time.Time
	grant func(ctx context.Context, seconds int64) (id int64, err error)
	open  map[int64]*eventLease // by minute
}

type eventLease struct {
	id   int64
	keys int
}

const (
	leaseMinute = int64(time.Minute / time.Second)
	leaseKeys   = 1000 // as many as upstream puts on one
)

func newEventLeases(grant func(context.Context, int64) (int64, error)) *eventLeases {
	return &eventLeases{start: time.Now(), grant: grant, open: map[int64]*eventLease{}}
}

// of returns the lease for a key; 0 if the key never expires. The lease ends at most a minute too late.
func (l *eventLeases) of(ctx context.Context, expires time.Time) (int64, error) {
	if expires.IsZero() {
		return 0, nil
	}
	minute := max(1, int64((expires.Sub(l.start)+time.Minute-1)/time.Minute))
	at := l.open[minute]
	if at == nil || at.keys == leaseKeys {
		id, err := l.grant(ctx, minute*leaseMinute)
		if err != nil {
			return 0, fmt.Errorf("grant a lease: %w", err)
		}
		at = &eventLease{id: id}
		l.open[minute] = at
	}
	at.keys++
	return at.id, nil
}
