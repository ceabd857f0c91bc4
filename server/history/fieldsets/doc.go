// Package fieldsets compares objects of the history by their fields: which fields a change touched, and what an
// object is without a change. It is the only room that uses structured-merge-diff/v4.
//
// Items of lists are followed by their merge keys, as managedFields tell them: server-side apply names an item of a
// list there by the keys that its schema has, and an item of a set by its value. So the keys of every kind are known,
// also of custom resources and of kinds that are gone, without their schema. A list of which no manager tells
// anything is one value, as an atomic list is.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
//
// The package must not know where objects come from, or where what it finds is shown. Objects are what JSON decodes
// to. They may be of any size and shape, and their managedFields may say anything: all work is in proportion to the
// objects, apart from sorting.
package fieldsets
