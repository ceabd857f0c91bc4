// Package etcd serves etcd's v3 protocol on a sqlstore.Store of raw keys.
//
// A file holds one service, or one concern of it: kv*.go reads and transactions, watch*.go,
// lease*.go, maintenance*.go with snapshots and hashes, cluster.go, auth.go, pages.go what is
// answered over plain HTTP, errors.go how a Store's errors are told. What an answer says follows
// go.etcd.io/etcd/server/v3 of release 3.7, in particular its package etcdserver/api/v3rpc.
//
// Revisions here are etcd's: those of transactions. Entries and events of the Store name ids,
// which changelog.Split takes apart.
package etcd
