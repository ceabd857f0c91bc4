// Package response holds what every answer of the Kubernetes API needs, whichever verb or
// document it comes from: the table from errors to statuses (errors.go), negotiation of the
// encoding (negotiate.go, and the router's own rules in routed.go), renderings of stored
// objects (render.go, table.go, protobuf.go), and the ways to write a body (write.go,
// stream.go, gzip.go). It also has what a request is bounded by before its verb looks at it
// (body.go, yamlbounds.go).
//
// An object is rendered once for each encoding that is asked for: renderings, and conversions
// by a webhook (convert.go), are kept with the entry of the log that they are made of.
//
// The package knows entries of the log and what rendering needs of a kind.Kind. It must not
// know verbs, paths, or the store that entries come from.
package response
