// Package rest holds the verbs of the Kubernetes API: get, list, watch, create, update, patch,
// delete, deletecollection and connect, one file for each, one handler for every resource. What
// differs between resources is data in a kind.Kind.
//
// A request goes through API.Serve (api.go). It is a call, which says who asks, with which
// options, and how the answer is encoded (call.go), and a target, the object that the call is
// about (target.go). Routing finds the verb (route.go). Reads share read.go and page.go, and are
// answered with stored bytes where they can be. Writes share write.go: the body is decoded
// (decode.go), changed by a creation, modification or deletion (create.go, modify.go, delete.go),
// shown to admission (admission.go) and the Kind's rules, and committed to the store.
//
// The package owns the order of these steps and the semantics of each verb. They follow
// https://kubernetes.io/docs/reference/using-api/api-concepts/ and, where that is silent,
// kube-apiserver of kind.Release. Errors, negotiation and renderings are in package response. The
// package must not know how requests are authenticated, limited or listened for, nor which Kinds
// there are.
package rest
