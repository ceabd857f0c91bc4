// Package definitions serves custom resources: it follows the CustomResourceDefinitions in
// the log, keeps a Kind in the registry for each version that they serve, and writes their
// conditions and accepted names.
//
// It owns the life of a definition, from its names to the deletion of its last instance. How
// objects of a custom resource are decoded, validated and converted is package custom's, and
// requests for them are answered by package rest as for any Kind.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
package definitions
