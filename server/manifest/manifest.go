// Package manifest brings manifests to the current versions of their objects: what was
// written for extensions/v1beta1 becomes what does the same in networking.k8s.io/v1.
//
// A manifest keeps its order, its comments and its style as far as possible. Documents that
// need no change, and those that are not Kubernetes' own, stay as they are, byte for byte. An
// object that changes has the fields that its author wrote, in their new places. It also has
// the fields without which the server would make another object of it, because defaults
// differ between versions.
//
// The package owns the forms of files, YAML and JSON, and the comparison of objects. It must
// not know servers: conversion and defaults are those of package kind/builtin.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Note tells what became of one object.
type Note struct {
	Document int    // in its file, from 1
	Item     int    // in its list, from 1; 0: it is in none
	Object   string // namespace/name, as far as it has them
	From, To schema.GroupVersionKind
	Since    int    // first minor release of Kubernetes without From; 0: not known
	Dropped  string // fields that no version has, and that no server has ever kept
	Err      error  // why the object stays as it is; nil: it has changed
}

func (n Note) String() string {
	where := fmt.Sprintf("document %d", n.Document)
	if n.Item > 0 {
		where += fmt.Sprintf(", item %d", n.Item)
	}
	if n.Err != nil {
		return fmt.Sprintf("%s: not migrated: %v", where, n.Err)
	}
	text := fmt.Sprintf("%s: %s %s %s is now %s", where, n.From.GroupVersion(), n.From.Kind, n.Object, n.To.GroupVersion())
	if n.Since > 0 {
		text += fmt.Sprintf(" (removed in v1.%d)", n.Since)
	}
	if n.Dropped != "" {
		text += "; left out, as no version has it: " + n.Dropped
	}
	return text
}

// Migrate returns a file, YAML or JSON of any number of documents, with all objects in their
// current versions, and a note for each object that was or could not be changed. An object
// that could not be changed is in the result as it was.
func Migrate(data []byte) ([]byte, []Note) {
	if documents, ok := splitJSON(data); ok {
		return migrate(documents, jsonForm{})
	}
	return migrate(splitYAML(data), yamlForm{})
}

// form is a way of writing objects.
type form interface {
	// read returns a document as an object; nil if it is none.
	read(text []byte) (map[string]any, error)
	// write returns the text changed to say what now says instead of was.
	write(text []byte, was, now map[string]any) ([]byte, error)
}

// document is a part of a file.
type document struct {
	before []byte // separator and spaces
	text   []byte
}

func migrate(documents []document, f form) (out []byte, notes []Note) {
	texts, found := make([][]byte, len(documents)), make([][]Note, len(documents))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range documents {
		group.Go(func() error {
			texts[i], found[i] = migrateDocument(d.text, f)
			return nil
		})
	}
	_ = group.Wait() // what is wrong is in the notes
	for i, d := range documents {
		text := texts[i]
		for _, n := range found[i] {
			n.Document = i + 1
			notes = append(notes, n)
		}
		out = append(out, d.before...)
		if bytes.HasSuffix(d.before, []byte("---")) && !bytes.Equal(text, d.text) {
			out = append(out, '\n') // where the content had been on the separator's line
		}
		out = append(out, text...)
	}
	return out, notes
}

// migrateDocument never fails as a whole: it leaves alone what it does not understand.
func migrateDocument(text []byte, f form) ([]byte, []Note) {
	was, err := f.read(text)
	if err != nil {
		return text, []Note{{Err: err}}
	}
	if was == nil {
		return text, nil
	}
	now, notes := current(was)
	changed := false
	for _, n := range notes {
		changed = changed || n.Err == nil
	}
	if !changed {
		return text, notes
	}
	out, err := f.write(text, was, now)
	if err != nil {
		return text, []Note{{Err: err}}
	}
	return out, notes
}

// errNothing says that an object needs no change.
var errNothing = errors.New("nothing to change")
