package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// servedFor is how long after the last renewal of its Lease a server is taken for one that runs. It renews
// it every ten seconds, and deletes it when it stops.
const servedFor = 25 * time.Second

// servedNow tells whether a plinth serves a database of objects, or was killed a moment ago. It does not
// see one whose Leases are encrypted.
func servedNow(ctx context.Context, log changelog.Log) (bool, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return false, err
	}
	from, to := changelog.RangeOf(object.Key(object.Prefix("coordination.k8s.io", "leases"), "kube-system", ""))
	rows, err := log.State(ctx, from, to, head.Revision, 1000)
	if err != nil {
		return false, fmt.Errorf("read who serves it: %w", err)
	}
	for _, row := range rows {
		var lease coordinationv1.Lease
		if json.Unmarshal(row.Value, &lease) == nil && lease.Labels[cluster.IdentityLabel] != "" &&
			lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < servedFor {
			return true, nil
		}
	}
	return false, nil
}
