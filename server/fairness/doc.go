// Package fairness divides the server among its clients, as kube-apiserver's API priority and
// fairness does: FlowSchemas sort requests into priority levels, each level has its share of the
// server's seats, and requests for which there is no seat wait in queues that are fair to every
// user or namespace, or are turned away.
//
// Upstream's package k8s.io/apiserver/pkg/util/flowcontrol decides: which FlowSchema a request
// matches, how the seats are divided, who waits and who is next. This package feeds it with the
// objects in the store, keeps the default objects up to date, and lets a request pass by
// upstream's queues as long as nobody waits in them; see level.
//
// It must not know routes, rights and handlers: the guard hands it requests.
package fairness
