// Package rest holds the verbs of the Kubernetes API: one file for each, one handler for
// every resource. What differs between resources is data in a kind.Kind.
//
// A request goes through Serve (api.go), which makes a request value (request.go) and
// calls the verb. Reads are served from the store's memory as stored bytes where they
// can be (render.go, list.go, watch.go). Writes go through decode, admission and the
// kind's rules to sqlstore.Store.Commit (create.go, update.go, patch.go, delete.go).
// Every error becomes a metav1.Status in one place (errors.go).
//
// Semantics follow https://kubernetes.io/docs/reference/using-api/api-concepts/ and,
// where that is silent, kube-apiserver 1.33.
package rest
