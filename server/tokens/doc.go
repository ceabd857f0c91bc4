// Package tokens signs the tokens of service accounts and authenticates requests by bearer
// tokens, with upstream's own code: k8s.io/kubernetes/pkg/serviceaccount. It owns the keys,
// the documents of the issuer, and the reading of the objects that a token depends on, which
// are in memory. It must not know HTTP requests: package authn finds the token in a request.
//
// # Keys
//
// Each server signs with one private key, its own or one from a file. Servers of a shared
// database publish their public keys in it, so that each server accepts the tokens of every
// other, and no files need to be copied. No resource of the API leads to the published keys:
// whoever could write there could become any service account.
package tokens
