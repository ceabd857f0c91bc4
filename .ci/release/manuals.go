package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// shells have completion scripts, under the names by which the shells look for them.
var shells = []struct{ Shell, File string }{
	{"bash", "%s"},
	{"zsh", "_%s"},
	{"fish", "%s.fish"},
}

// completion returns the path of a completion script that writeManuals has made.
func (r *release) completion(program, shell, file string) string {
	return filepath.Join(r.work, "completions", shell, fmt.Sprintf(file, program))
}

// pages is the directory of the man pages.
func (r *release) pages() string { return filepath.Join(r.work, "man") }

// writeManuals asks each program for its completion scripts, and makes man pages of its help.
func (r *release) writeManuals() error {
	p, err := here()
	if err != nil {
		return err
	}
	for _, program := range programs {
		path := r.program(program.Name, p)
		for _, s := range shells {
			script, err := exec.Command(path, "completion", s.Shell).Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", program.Name, s.Shell, err)
			}
			if err := writeFile(r.completion(program.Name, s.Shell, s.File), script); err != nil {
				return err
			}
		}
		if err := r.writePages(path); err != nil {
			return err
		}
	}
	return nil
}

// command is a command as `plinth docs commands.json` describes it.
type command struct {
	Use, Short, Long, Example string
	Flags                     []struct{ Name, Shorthand, Usage, Default, Type, NoValue string }
	Commands                  []command
}

// writePages writes a man page for each command.
func (r *release) writePages(program string) error {
	described := filepath.Join(r.work, "commands.json")
	if out, err := exec.Command(program, "docs", described).CombinedOutput(); err != nil {
		return fmt.Errorf("docs: %w: %s", err, out)
	}
	text, err := os.ReadFile(described)
	if err != nil {
		return err
	}
	var root command
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	if err := os.MkdirAll(r.pages(), 0o755); err != nil {
		return err
	}
	tree := root.tree()
	tree.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Date: &r.date, Source: product + " " + r.version, Manual: product}
	if err := doc.GenManTree(tree, &header, r.pages()); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(r.pages(), "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := alignLeft(page); err != nil {
			return err
		}
	}
	return nil
}

// alignLeft makes the lines of a page end where their words do: a list of names that is longer than half a line leaves holes in
// others, and man complains.
func alignLeft(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text = regexp.MustCompile(`(?m)^\.TH .*$`).ReplaceAll(text, []byte("$0\n.ad l"))
	return os.WriteFile(page, text, 0o644)
}

// tree makes a command of cobra's again, which does nothing.
func (c command) tree() *cobra.Command {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: verbatim(c.Long), Example: c.Example, Run: func(*cobra.Command, []string) {}}
	for _, f := range c.Flags {
		cmd.Flags().AddFlag(&pflag.Flag{Name: f.Name, Shorthand: f.Shorthand, Usage: escape(f.Usage), DefValue: f.Default,
			NoOptDefVal: f.NoValue, Value: typeOf(f.Type)})
	}
	for _, below := range c.Commands {
		cmd.AddCommand(below.tree())
	}
	return cmd
}

// verbatim escapes a help text, and keeps the lines that are indented as they are: Markdown's code, between empty lines.
func verbatim(text string) string {
	var out []string
	code := false
	for _, line := range strings.Split(text, "\n") {
		if line != "" && code != strings.HasPrefix(line, "  ") {
			code = !code
			out = append(out, "")
		}
		if code {
			line = "    " + line
		} else {
			line = escape(line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// escape keeps Markdown from taking characters of a text for markup. Backquotes are markup in help, too.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `<`, `\<`, `[`, `\[`, `]`, `\]`, `#`, `\#`).Replace(text)
}

// typeOf is the value of a flag that only says its type.
type typeOf string

func (t typeOf) Type() string     { return string(t) }
func (t typeOf) String() string   { return "" }
func (t typeOf) Set(string) error { return nil }
