// Package aggregate hands requests of some group versions on to extension servers: those
// that an APIService object names a Service for. It adds their discovery and their schemas
// to the server's own.
// https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
//
// It knows nothing of the log: package control tells it which APIServices there are.
package aggregate
