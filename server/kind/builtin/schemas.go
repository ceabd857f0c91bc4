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

// The schemas of built-in types say which lists are sets or maps, and which fields are atomic. Upstream has them as YAML, and
// those of types without apply configurations as OpenAPI definitions. To read these takes 0.2 s, more than a start takes of a
// processor, and leaves 20 MB of garbage, so they are in the program as package gob writes them. TestSchemas checks that they
// are upstream's. After an upgrade of Kubernetes:
//
//go:generate go test . -run ^TestSchemas$ -update
var (
	//go:embed schemas.gob
	schemasGob []byte
	//go:embed described.gob
	describedGob []byte
)

// parser has the types with apply configurations, describedParser the others. Each is read once per process, before the first
// write or beside a start.
var (
	parser          = sync.OnceValue(func() *typed.Parser { return newParser(schemasGob) })
	describedParser = sync.OnceValue(func() *typed.Parser { return newParser(describedGob) })
)

func newParser(encoded []byte) *typed.Parser {
	types, err := readTypes(bytes.NewReader(encoded))
	if err != nil {
		panic(fmt.Sprintf("schemas of built-in types: %v", err)) // they are part of the program
	}
	return &typed.Parser{Schema: schema.Schema{Types: types}}
}

// ReadSchemas reads the schemas of built-in types, so that the first write need not wait for it.
func ReadSchemas() {
	parser()
	describedParser()
}

func init() {
	gob.Register(map[any]any{})    // a default value, as package yaml decodes it
	gob.Register(map[string]any{}) // a default value of an OpenAPI definition
}

func readTypes(r io.Reader) ([]schema.TypeDef, error) {
	var types []schema.TypeDef
	err := gob.NewDecoder(r).Decode(&types)
	return types, err
}
