// Package etcdtest compares an etcd endpoint with etcd itself.
//
// Generate makes a random sequence of requests, Play sends it to an endpoint and writes down what
// the endpoint answers, Compare finds the first difference of two such records, and Shrink looks for
// a shorter sequence that still shows it. Start runs a real etcd of the release in
// cmd/plinth/testdata/etcd, a module of its own, as etcd needs newer libraries than plinth. Older are the
// differences of the release in cmd/plinth/testdata/etcd36.
//
// A Load has clients work as Kubernetes does while members and databases fail. History is what they
// saw, and Check judges it.
//
// It is for tests only. It knows etcd's protocol and nothing about plinth's inside.
package etcdtest
