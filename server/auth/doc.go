// Package auth says who may do what: the certificates that plinth makes for itself, the
// kubeconfig that points at them, and the decisions about requests.
//
// A caller is known by a client certificate signed by plinth's CA, as kube-apiserver's
// --client-ca-file does it: the common name is the user, the organizations are the
// groups; or by a bearer token, for which see package tokens. A caller with neither is
// anonymous. Members of system:masters may do everything; others reach health and version,
// and may ask who they are and what they may do.
package auth
