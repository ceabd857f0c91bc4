// Package fieldsets compares objects of the history by their fields: which fields a change touched, and what
// an object is without a change. No other package uses structured-merge-diff/v4.
//
// List items are matched by their merge keys, which managedFields contain: server-side apply names an item
// there by the keys of its schema, and an item of a set by its value. So the keys of every kind are known
// without a schema, including those of custom resources and of kinds that no longer exist. A list that no
// manager owns in parts counts as one value, like an atomic list.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
//
// The package must not know where objects come from, or where its results are shown. Objects are decoded
// JSON. They may have any size and shape, and their managedFields may contain anything: all work is
// proportional to the size of the objects, except for sorting.
package fieldsets
