package builtin

import (
	"bytes"
	_ "embed"
	"encoding/gob"
	"fmt"
	"io"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// The schemas of built-in types say which lists are sets or maps, and which fields are atomic. Upstream has them as YAML.
// To parse it takes 0.15 s, more than a third of what a start takes of a processor, and leaves 20 MB of garbage, so they are
// in the program as package gob writes them. TestSchemas checks that they are upstream's. After an upgrade of Kubernetes:
//
//go:generate go test . -run ^TestSchemas$ -update
//go:embed schemas.gob
var schemasGob []byte

// parser has them. They are read once per process, before the first write or beside a start.
var parser = sync.OnceValue(func() *typed.Parser {
	types, err := readTypes(bytes.NewReader(schemasGob))
	if err != nil {
		panic(fmt.Sprintf("schemas.gob: %v", err)) // it is part of the program
	}
	return &typed.Parser{Schema: schema.Schema{Types: types}}
})

// ReadSchemas reads the schemas of built-in types, so that the first write need not wait for it.
func ReadSchemas() { parser() }

func init() {
	gob.Register(map[any]any{}) // a default value, as package yaml decodes it
}

func writeTypes(w io.Writer, types []schema.TypeDef) error { return gob.NewEncoder(w).Encode(types) }

func readTypes(r io.Reader) ([]schema.TypeDef, error) {
	var types []schema.TypeDef
	err := gob.NewDecoder(r).Decode(&types)
	return types, err
}
