// Package simulation simulates the nodes of a cluster: it registers them, keeps them ready, and has the pods that are bound to
// them run and end, without containers. It owns what kubelets write: Nodes, their Leases, and the status of their pods.
//
// What becomes of nodes and pods is what kwok's stages "fast" and "heartbeat with lease" have (https://kwok.sigs.k8s.io):
// a node is ready at once and renews its Lease; a pod is ready at once, a pod of a Job then succeeds, and a pod that is
// deleted is gone at once.
//
// Each node is a client of the API as a kubelet is, with the user and the rights of one (system:node:NAME), so that what it
// does appears under its name. It follows its own pods and keeps no copy of them.
//
// The package must not know who schedules pods, or the store.
package simulation
