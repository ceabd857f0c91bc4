// Package storageadapter lets upstream's registries work on a sqlstore.Store. It implements
// k8s.io/apiserver's storage.Interface for one resource at a time.
//
// It is for rare and intricate requests for which upstream's own code is the right answer:
// binding and evicting pods, tokens of service accounts, the addresses and ports of Services,
// connections to kubelets. plinth's own verbs do not go through it: they serve stored bytes.
// The package must not know requests, only objects and keys.
package storageadapter
