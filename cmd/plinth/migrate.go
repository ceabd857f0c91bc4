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
)

const migrateHelp = `Print manifests with all objects in their current versions.

A FILE is YAML or JSON, of any number of documents; - is standard input, and of a
directory all files that end in .yaml, .yml or .json are read, with -R also those of the
directories below. What was YAML stays YAML and what was JSON stays JSON, in the same
order. Documents that need no change stay as they are, byte for byte; so do custom
resources and what is not Kubernetes' at all. An object that changes keeps what its author
wrote, and is given the fields without which it would be another object, because defaults
differ between versions.

Each object that changes, and each that cannot, is a line on standard error. The exit code
is 0 if all are in current versions now, 1 if one could not be migrated or read.`

// migration is the command's flags and streams.
type migration struct {
	inPlace   bool
	recursive bool

	stdin          io.Reader
	stdout, stderr io.Writer
	printed        bool // something is on stdout
	unended        bool // and its last line is not ended
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
	cmd.Flags().BoolVarP(&m.inPlace, "in-place", "w", false, "write changed files back instead of printing them")
	cmd.Flags().BoolVarP(&m.recursive, "recursive", "R", false, "read directories with all that is below them")
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
	for _, arg := range args {
		files, err := m.files(arg)
		if err != nil {
			failed++
			fmt.Fprintln(m.stderr, err)
		}
		for _, file := range files {
			n, err := m.migrate(file)
			if failed += n; err != nil {
				failed++
				fmt.Fprintln(m.stderr, err)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d could not be migrated", failed)
	}
	return nil
}

// files are those that an argument stands for, in order.
func (m *migration) files(arg string) (files []string, err error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, err
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
		case !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// migrate does one file and returns how many objects could not be migrated.
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

// print separates the documents of one file from those of the next.
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

// replaceFile puts a file with the same permissions in the place of one, or leaves it as
// it is.
func replaceFile(name string, data []byte) (err error) {
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // if it has not been renamed
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Sync(), temp.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(temp.Name(), name)
}
