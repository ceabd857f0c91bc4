// Package etcd serves etcd's v3 protocol on a sqlstore.Store of raw keys.
//
// A file holds one service, or one part of it: kv*.go reads and transactions, watch*.go, lease*.go,
// maintenance*.go with snapshots and hashes, cluster.go, auth.go, pages.go the pages over plain HTTP,
// errors.go the statuses for a Store's errors. The contents of answers follow go.etcd.io/etcd/server/v3 of
// release 3.7, in particular its package etcdserver/api/v3rpc.
//
// Revisions here are those of etcd, which count transactions. Entries and events of the Store have ids;
// changelog.Split divides an id into revision and number.
package etcd
