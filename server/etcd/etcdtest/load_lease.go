package etcdtest

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// grant gets a new lease for the next keys.
func (c *client) grant(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := c.load.history.Now()
	r, err := c.leases().LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(2 + c.rand.IntN(3))})
	if err != nil {
		return false
	}
	c.load.leases.Add(1)
	c.lease = c.load.history.AddLease(&Lease{ID: r.ID, TTL: time.Duration(r.TTL) * time.Second, Renewed: begin})
	return true
}

func (c *client) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := c.load.history.Now()
	stream, err := c.leases().LeaseKeepAlive(ctx)
	if err != nil {
		return false
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: c.lease.ID}); err != nil {
		return false
	}
	r, err := stream.Recv()
	switch {
	case err != nil:
		return false
	case r.TTL > 0:
		c.lease.Renewed = begin
	default:
		c.lease = nil
	}
	return true
}

// awaitLeases waits until all leases have ended.
func (c *client) awaitLeases(ctx context.Context) error {
	for _, lease := range c.load.history.Leases {
		for !lease.Gone {
			r, err := c.timeToLive(ctx, lease.ID)
			lease.Gone = err == nil && r.TTL == -1
			if ctx.Err() != nil {
				return fmt.Errorf("wait for the end of lease %d: %w", lease.ID, ctx.Err())
			}
			if !lease.Gone {
				c.move()
				_ = sleep.For(ctx, 100*time.Millisecond)
			}
		}
	}
	return nil
}

func (c *client) timeToLive(ctx context.Context, id int64) (*pb.LeaseTimeToLiveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.leases().LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id})
}
