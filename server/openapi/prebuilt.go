package openapi

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
)

// The documents of built-in Kinds depend only on the program and its flags, and building all of them
// takes seconds. So the program contains those of a server with default flags. It finds them by a hash
// of their inputs; other flags make other inputs, whose documents are built at their first request. A
// test of package server checks that the prebuilt documents equal what is built. After an upgrade of
// Kubernetes or a change of the descriptions, run:
//
//go:generate go test .. -run ^TestPrebuiltDocuments$ -update
//go:embed prebuilt.zip
var prebuiltZip []byte

// prebuiltKey identifies a file of the archive by its name and by its inputs, which are its comment.
type prebuiltKey struct{ name, inputs string }

// prebuilt has the files of the archive. They stay in the program's file, outside the heap.
var prebuilt = sync.OnceValue(func() map[prebuiltKey]chunk {
	files, err := zip.NewReader(bytes.NewReader(prebuiltZip), int64(len(prebuiltZip)))
	if err != nil {
		panic(fmt.Sprintf("prebuilt.zip: %v", err)) // the archive is part of the program
	}
	found := make(map[prebuiltKey]chunk, len(files.File))
	for _, f := range files.File {
		begin, err := f.DataOffset()
		if err != nil {
			panic(fmt.Sprintf("prebuilt.zip: %v", err))
		}
		end := begin + int64(f.CompressedSize64) - int64(len(lastBlock))
		size := int64(f.UncompressedSize64)
		found[prebuiltKey{f.Name, f.Comment}] = chunk{deflated: prebuiltZip[begin:end:end], size: size, sum: f.CRC32, shift: shift(size)}
	}
	return found
})

// prebuilt returns a document of v3, if the program contains it.
func (g *groupVersion) prebuilt(format string) (chunk, bool) {
	c, ok := prebuilt()[prebuiltKey{nameOfDoc(g.path, format), g.inputs}]
	return c, ok
}

func nameOfDoc(path, format string) string { return "v3/" + path + "." + format }

// Names of the pieces of v2.
const (
	v2Paths       = "v2/paths.json"
	v2Definitions = "v2/definitions.json"
	v2Rest        = "v2/rest.json"
	v2Proto       = "v2/all.proto"
)

// restOfV2 is what a part has in addition to its chunks.
type restOfV2 struct {
	Head       []byte
	Parameters map[string]json.RawMessage
	Names      []string
}

// prebuiltPart returns the part of the built-in Kinds; nil if the program does not contain it.
func (s *description) prebuiltPart() (*part, error) {
	pieces := prebuilt()
	packed, ok := pieces[prebuiltKey{v2Rest, s.inputs}]
	if !ok {
		return nil, nil
	}
	text, err := body{packed}.read()
	if err != nil {
		return nil, err
	}
	var rest restOfV2
	if err := json.Unmarshal(text, &rest); err != nil {
		return nil, fmt.Errorf("decode %s: %w", v2Rest, err)
	}
	p := &part{
		head: rest.Head, parameters: rest.Parameters, names: make(map[string]bool, len(rest.Names)),
		paths: pieces[prebuiltKey{v2Paths, s.inputs}], definitions: pieces[prebuiltKey{v2Definitions, s.inputs}],
	}
	for _, name := range rest.Names {
		p.names[name] = true
	}
	return p, nil
}

// Prebuild builds the documents of the registry's built-in Kinds, and writes them as an archive for
// prebuilt.zip. Nothing else may build documents at the same time.
func (o *OpenAPI) Prebuild(w io.Writer) error {
	s := o.describe()
	types := typesOfAll() // for all documents
	a := archive{zip.NewWriter(w)}
	for _, path := range s.paths {
		if err := a.addDocument(s.groups[path]); err != nil {
			return err
		}
	}
	if err := a.addV2(s); err != nil {
		return err
	}
	runtime.KeepAlive(types)
	return a.files.Close()
}

type archive struct{ files *zip.Writer }

func (a archive) addDocument(g *groupVersion) error {
	if g.custom() {
		return nil
	}
	text, err := g.buildV3()
	if err != nil {
		return err
	}
	binary, err := toProto(text)
	if err != nil {
		return err
	}
	if err := a.add(nameOfDoc(g.path, "json"), g.inputs, deflate(text)); err != nil {
		return err
	}
	return a.add(nameOfDoc(g.path, "proto"), g.inputs, deflate(binary))
}

func (a archive) addV2(s *description) error {
	p, err := s.buildBuiltinPart()
	if err != nil {
		return err
	}
	binary, err := buildProtoPart(p, p)
	if err != nil {
		return err
	}
	rest, err := json.Marshal(restOfV2{Head: p.head, Parameters: p.parameters, Names: slices.Sorted(maps.Keys(p.names))})
	if err != nil {
		return fmt.Errorf("encode %s: %w", v2Rest, err)
	}
	for _, piece := range []struct {
		name string
		chunk
	}{{v2Paths, p.paths}, {v2Definitions, p.definitions}, {v2Rest, deflate(rest)}, {v2Proto, binary.proto}} {
		if err := a.add(piece.name, s.inputs, piece.chunk); err != nil {
			return err
		}
	}
	return nil
}

// add adds a chunk, completed with an end so that other programs can read the file.
func (a archive) add(name, inputs string, c chunk) error {
	w, err := a.files.CreateRaw(&zip.FileHeader{
		Name: name, Comment: inputs, Method: zip.Deflate, CRC32: c.sum,
		CompressedSize64: uint64(len(c.deflated) + len(lastBlock)), UncompressedSize64: uint64(c.size),
	})
	if err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	_, err = w.Write(append(c.deflated[:len(c.deflated):len(c.deflated)], lastBlock...))
	return err
}
