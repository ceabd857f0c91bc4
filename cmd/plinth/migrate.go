package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server/manifest"
	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

const migrateHelp = `Print manifests with all objects in their current API versions.

A FILE is YAML or JSON and may hold several documents. The name - stands for standard
input. For a directory, plinth reads all files whose names end in .yaml, .yml or .json;
with -R it also reads the directories below. YAML stays YAML, JSON stays JSON, and the
order stays the same. A document that needs no change is printed as it is, byte for byte.
So are custom resources and documents that are not Kubernetes objects. An object that
changes keeps what its author wrote. Where the defaults of the versions differ, plinth adds
the fields that keep its meaning.

Standard error has one line for each object that was migrated and for each that cannot be.
The exit code is 0 if all objects are in current versions now, and 1 if an object could not
be migrated or a file could not be read.

If standard output goes into a directory that is being read, that file is left out. If two
files have the same object, as when one of them is the output of an earlier run, a line on
standard error names both.`

// migration is the command's flags and streams.
type migration struct {
	inPlace   bool
	recursive bool

	stdin          io.Reader
	stdout, stderr io.Writer
	printed        bool // stdout has a document
	unended        bool // the last line of stdout has no newline
	seen           duplicates
}

func newMigrateManifests() *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use:   "migrate-manifests FILE…",
		Short: "Print manifests in the current versions of their objects",
		Long:  migrateHelp,
		Example: `  plinth migrate-manifests old.yaml > new.yaml
  plinth migrate-manifests -w -R manifests/
  helm template chart/ | plinth migrate-manifests - | kubectl apply -f -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			m.stdin, m.stdout, m.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return m.run(args)
		},
	}
	addFlags(cmd,
		Flag{Name: "in-place", Short: "w", Set: boolean(&m.inPlace, false), Help: "write changed files back instead of printing them"},
		Flag{Name: "recursive", Short: "R", Set: boolean(&m.recursive, false), Help: "read directories and the directories below them"},
	)
	return cmd
}

func (m *migration) run(args []string) error {
	if len(args) == 0 {
		return usagef("write the files to migrate, or - for standard input; see plinth migrate-manifests --help")
	}
	if m.inPlace && slices.Contains(args, "-") {
		return usagef("standard input cannot be written back; leave out -w")
	}
	failed := 0
	m.seen = duplicates{}
	for _, arg := range args {
		files, err := m.files(arg)
		if err != nil {
			failed++
			fmt.Fprintln(m.stderr, "plinth:", oneLine(err))
		}
		for _, file := range files {
			n, err := m.migrate(file)
			if failed += n; err != nil {
				failed++
				fmt.Fprintln(m.stderr, "plinth:", oneLine(err))
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d could not be migrated", failed)
	}
	return nil
}

// files returns the files that an argument stands for, in order.
func (m *migration) files(arg string) (files []string, err error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && isFile(m.stdout, arg) {
		return nil, fmt.Errorf("%s: the output goes into this file, which the shell has emptied; write to another file, or use -w", arg)
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != arg && !m.recursive:
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
		case isFile(m.stdout, path):
			fmt.Fprintf(m.stderr, "%s: not read, because the output goes there; write it outside of %s\n", path, arg)
		default:
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// migrate migrates one file and returns how many objects could not be migrated.
func (m *migration) migrate(file string) (failed int, err error) {
	data, err := m.read(file)
	if err != nil {
		return 0, err
	}
	out, notes := manifest.Migrate(data)
	for _, n := range notes {
		if n.Err != nil {
			failed++
		}
		fmt.Fprintf(m.stderr, "%s: %s\n", file, oneLine(errors.New(n.String())))
	}
	if !m.inPlace {
		for _, warning := range m.seen.add(file, out) {
			fmt.Fprintln(m.stderr, warning)
		}
		return failed, m.print(out)
	}
	if bytes.Equal(out, data) {
		return failed, nil
	}
	return failed, replaceFile(file, out)
}

func (m *migration) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(m.stdin)
	}
	return os.ReadFile(file)
}

// print writes the documents of one file, separated from those of the file before.
func (m *migration) print(out []byte) error {
	text := strings.TrimLeft(string(out), " \t\r\n")
	if text == "" {
		return nil
	}
	between := ""
	if m.unended {
		between = "\n"
	}
	if m.printed && !strings.HasPrefix(text, "---") {
		between += "---\n"
	}
	if _, err := io.WriteString(m.stdout, between); err != nil {
		return err
	}
	m.printed, m.unended = true, !strings.HasSuffix(text, "\n")
	_, err := m.stdout.Write(out)
	return err
}

// replaceFile replaces a file by one with the same permissions. If that fails, the file stays as
// it is.
func replaceFile(name string, data []byte) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
