// Package scrub finds damage in a log of Kubernetes objects: values that cannot be decoded or belong to
// another key, rows out of order, chains of changes with a piece missing, a view that does not show the
// state. It only reads, beside those who write. It owns what counts as damage, and must not know how
// rows are stored, nor what is done about a problem.
package scrub
