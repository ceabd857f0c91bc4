// Package authz decides what a user may do. Upstream's authorizers decide: RBAC and Node on the
// objects in the store, ABAC, Webhook and the constant ones, one after the other in the order
// that the Options name, after members of system:masters, who may do everything.
//
// It owns the options, the chain of authorizers and its reload, and what the authorizers read:
// bindings by their subjects, and the graph of what belongs to a node. It must not know how the
// user is known, or what requests do.
package authz
