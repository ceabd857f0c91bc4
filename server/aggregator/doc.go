// Package aggregator hands requests of some group versions on to extension servers: those
// that an APIService object names a Service for. It adds their discovery and their schemas
// to the server's own.
// https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
//
// APIServices follows the objects in the log: it registers the group versions that the server
// has itself, tells Services which ones extension servers have, and keeps the conditions that
// say whether these can be reached. Services hands on requests and knows nothing of the log.
package aggregator
