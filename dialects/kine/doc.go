// Package kine reads the databases of kine (github.com/k3s-io/kine), the shim between
// kube-apiserver and SQL that k3s has, for those who switch to plinth: the spellings of its
// endpoints, and its table, with all SQL for that. It never writes.
package kine
