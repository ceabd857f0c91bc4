// Package auth says who may do what: the certificates that plinth makes for itself, the
// kubeconfig that points at them, and the decisions about requests.
//
// A caller is known by a client certificate signed by plinth's CA, as kube-apiserver's
// --client-ca-file does it: the common name is the user, the organizations are the
// groups. A caller without one is anonymous. Members of system:masters may do
// everything; anonymous callers reach health and version.
package auth
