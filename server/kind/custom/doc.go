// Package custom makes Kinds of CustomResourceDefinitions: each served version of each
// definition is a Kind whose hub form is the unstructured object of that version, and all
// versions of a definition share what is stored.
//
// Schemas, validation, defaulting, conversion, CEL and columns are upstream's packages;
// what is here puts them together in the order in which kube-apiserver's handler of custom
// resources does (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
//
// Most definitions of a cluster are never used in a given process, and their schemas are
// large. So a Kind holds only names until its first request; then the schema is decoded
// from the definition's JSON and compiled, once for all versions.
package custom
