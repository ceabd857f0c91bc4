package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	architecture = "docs/architecture.md"
	module       = "github.com/plinth-io/plinth/"
)

// TestArchitectureRooms compares the rooms in docs/architecture.md with the packages of the
// repository, and their order with what the files without tests import. The blocks of the document
// are the picture and the rooms.
func TestArchitectureRooms(t *testing.T) {
	t.Parallel()
	blocks := blocksOf(architecture, readDocument(t, architecture))
	var rooms []string
	for _, line := range blocks[len(blocks)-1].lines {
		if name, _, _ := strings.Cut(line, " "); name != "" {
			rooms = append(rooms, name)
		}
	}
	entered := map[string]bool{}
	for _, dir := range packagesOf(t) {
		room := roomOf(rooms, dir)
		entered[room] = true
		if room == "" {
			t.Errorf("%s does not have the room %s", architecture, dir)
			continue
		}
		for _, imported := range importsOf(t, dir) {
			if to := roomOf(rooms, imported); slices.Index(rooms, to) < slices.Index(rooms, room) {
				t.Errorf("%s imports %s, which is not below it in %s", dir, imported, architecture)
			}
		}
	}
	for _, room := range rooms {
		if !entered[room] {
			t.Errorf("%s has the room %s, which is no package", architecture, room)
		}
	}
}

// shared are rooms of several packages.
var shared = []string{"dialects/internal", "dialects/logtest"}

// roomOf returns the room that a package is in, or "".
func roomOf(rooms []string, dir string) string {
	for _, room := range rooms {
		if dir == room || slices.Contains(shared, room) && strings.HasPrefix(dir, room+"/") {
			return room
		}
	}
	return ""
}

// TestArchitectureTests holds that nothing which runs outside tests imports a package whose path says that it is for tests.
func TestArchitectureTests(t *testing.T) {
	t.Parallel()
	forTests := func(dir string) bool {
		return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool { return strings.HasSuffix(name, "test") })
	}
	for _, dir := range packagesOf(t) {
		if forTests(dir) {
			continue
		}
		for _, imported := range importsOf(t, dir) {
			if forTests(imported) {
				t.Errorf("%s imports %s, which is for tests", dir, imported)
			}
		}
	}
}

// TestArchitectureFieldSets holds that one room uses the structured-merge-diff of the history, and no test does elsewhere:
// all others use the release that upstream's libraries speak.
func TestArchitectureFieldSets(t *testing.T) {
	t.Parallel()
	const room, library = "server/history/fieldsets", "sigs.k8s.io/structured-merge-diff/v4"
	var users []string
	for _, dir := range packagesOf(t) {
		if slices.ContainsFunc(pathsOf(t, dir, true), func(path string) bool { return strings.HasPrefix(path, library+"/") }) {
			users = append(users, dir)
		}
	}
	if !slices.Equal(users, []string{room}) {
		t.Errorf("%s is used in %q, and should be in %s alone", library, users, room)
	}
}

// importsOf returns the packages of this module that the files of a package import, without its
// tests.
func importsOf(t *testing.T, dir string) (imported []string) {
	t.Helper()
	for _, path := range pathsOf(t, dir, false) {
		if name, ours := strings.CutPrefix(path, module); ours {
			imported = append(imported, name)
		}
	}
	return imported
}

// pathsOf returns what the files of a package import, with or without its tests.
func pathsOf(t *testing.T, dir string, tests bool) (paths []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, dir, "*.go"))
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") && !tests {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		must(t, err)
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			must(t, err)
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// TestArchitectureNames looks up the functions and types that docs/architecture.md names, such as
// `sqlstore.Store.Commit`.
func TestArchitectureNames(t *testing.T) {
	t.Parallel()
	known, packages := map[string]bool{}, map[string]bool{}
	for _, dir := range packagesOf(t) {
		name := filepath.Base(dir)
		packages[name] = true
		for _, declared := range declarations(t, filepath.Join(repository, dir)) {
			known[name+"."+declared] = true
		}
	}
	names := regexp.MustCompile("`((\\w+)\\.\\w+(?:\\.\\w+)?)`").FindAllStringSubmatch(readDocument(t, architecture), -1)
	for _, m := range names {
		if packages[m[2]] && !known[m[1]] && !strings.HasSuffix(m[1], ".go") {
			t.Errorf("%s names %s, which is not declared", architecture, m[1])
		}
	}
}

// packagesOf returns the directories of the packages of this module, from its root.
func packagesOf(t *testing.T) (dirs []string) {
	t.Helper()
	for _, top := range []string{"bench", "cmd", "dialects", "migrations", "server", "sqlstore"} {
		must(t, filepath.WalkDir(filepath.Join(repository, top), func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "testdata":
				return filepath.SkipDir
			case filepath.Ext(path) == ".go":
				dir, err := filepath.Rel(repository, filepath.Dir(path))
				dirs = append(dirs, filepath.ToSlash(dir))
				return err
			}
			return nil
		}))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// declarations returns the names of the functions, types and methods of a package; a method is
// Type.Method, also that of an interface which the type consists of.
func declarations(t *testing.T, dir string) (names []string) {
	t.Helper()
	embedding := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range parsed.Decls {
			names = append(names, namesIn(d)...)
			maps.Copy(embedding, embedded(d))
		}
	}
	for outer, parts := range embedding {
		for _, name := range slices.Clone(names) {
			if part, method, ok := strings.Cut(name, "."); ok && slices.Contains(parts, part) {
				names = append(names, outer+"."+method)
			}
		}
	}
	return names
}

// embedded returns, by the names of interfaces that d declares, which interfaces of the package they consist of.
func embedded(d ast.Decl) map[string][]string {
	parts := map[string][]string{}
	general, ok := d.(*ast.GenDecl)
	if !ok {
		return nil
	}
	for _, spec := range general.Specs {
		s, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if methods, ok := s.Type.(*ast.InterfaceType); ok {
			for _, part := range methods.Methods.List {
				if name, ok := part.Type.(*ast.Ident); ok {
					parts[s.Name.Name] = append(parts[s.Name.Name], name.Name)
				}
			}
		}
	}
	return parts
}

// namesIn returns the names that one declaration introduces: of an interface also its methods.
func namesIn(d ast.Decl) (names []string) {
	if f, ok := d.(*ast.FuncDecl); ok {
		return []string{receiverOf(f) + f.Name.Name}
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		s, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		names = append(names, s.Name.Name)
		if methods, ok := s.Type.(*ast.InterfaceType); ok {
			for _, method := range methods.Methods.List {
				for _, name := range method.Names {
					names = append(names, s.Name.Name+"."+name.Name)
				}
			}
		}
	}
	return names
}

// receiverOf returns "Type." for a method, and nothing for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
