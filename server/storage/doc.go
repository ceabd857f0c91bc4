// Package storage lets upstream's registries work on a sqlstore.Store. It implements
// k8s.io/apiserver's storage.Interface for one resource at a time.
//
// plinth's own verbs do not go through it: they serve stored bytes. It is for what is rare
// and intricate and has one right answer, upstream's own code: binding and evicting pods,
// tokens of service accounts, the addresses and ports of Services, connections to kubelets.
package storage
