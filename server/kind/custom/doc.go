// Package custom makes Kinds of CustomResourceDefinitions. Each served version of a
// definition is a Kind whose hub form is the unstructured object of that version. All
// versions of a definition share the stored objects.
//
// Schemas, validation, defaulting, conversion, CEL and columns are upstream's packages. This
// package combines them in the order in which kube-apiserver's handler of custom resources
// does (apiextensions-apiserver, pkg/apiserver/customresource_handler.go). It owns the calls
// to conversion webhooks. It does not know which definitions are served, or the registry.
//
// Most definitions of a cluster are never used in a given process, and their schemas are
// large. So a Kind holds only names until its first request. Then the schema is decoded from
// the definition's JSON and compiled, once for all versions.
//
// Several short cuts skip upstream's work where its result is known: certain values need no
// validator, objects that are pruned already no pruning, plain metadata no round trip through
// ObjectMeta. A short cut may decline where it could apply, but never the other way round.
package custom
