// Package etcd serves etcd's v3 protocol on a sqlstore.Store of raw keys.
package etcd

import (
	_ "go.etcd.io/bbolt"
	_ "go.etcd.io/etcd/api/v3/etcdserverpb"
	_ "google.golang.org/grpc"
)
