// Package authn finds out who sends a request. It must not know what the sender may do, or what
// requests do.
//
// A caller is identified by a client certificate signed by plinth's authority, as kube-apiserver's
// --client-ca-file does it: the common name is the user, the organizations are the
// groups; or by a bearer token, for which see package tokens. A caller with neither is
// system:anonymous.
package authn
