package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:generate go run . docs ../../docs/flags.md

// newDocs is the hidden command that writes the reference of flags, which a test compares with
// docs/flags.md, or the help of all commands, of which make release makes man pages.
func newDocs() *cobra.Command {
	return &cobra.Command{
		Use:    "docs FILE",
		Short:  "Write the reference of all flags as Markdown, or the help of all commands as JSON",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("write the file to make, such as docs/flags.md or commands.json")
			}
			text := flagReference(cmd.Root())
			if filepath.Ext(args[0]) == ".json" {
				var err error
				if text, err = json.MarshalIndent(helpOf(cmd.Root()), "", "  "); err != nil {
					return err
				}
			}
			return os.WriteFile(args[0], text, 0o644)
		},
	}
}

// commandHelp is the help of a command and of those below it.
type commandHelp struct {
	Use, Short, Long, Example string
	Flags                     []flagHelp
	Commands                  []commandHelp
}

type flagHelp struct {
	Name, Shorthand, Usage, Type string
	Default                      string
	NoValue                      string // what the flag means without a value
}

// helpOf returns the help of a command that is not hidden.
func helpOf(cmd *cobra.Command) commandHelp {
	help := commandHelp{Use: cmd.Use, Short: cmd.Short, Long: cmd.Long, Example: cmd.Example}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			help.Flags = append(help.Flags, flagHelp{f.Name, f.Shorthand, f.Usage, f.Value.Type(), f.DefValue, f.NoOptDefVal})
		}
	})
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			help.Commands = append(help.Commands, helpOf(below))
		}
	}
	return help
}

const referenceHead = `# Flags

<!-- Made by go generate ./cmd/plinth. Change the help texts there, not this file. -->

Every flag with a variable in these tables can also be set by it; the flag has precedence. An empty
variable counts as none. Durations are written as` + "`30s`, `5m` or `1h30m`" + `, lists with commas between
their items. A variable whose name begins with ` + "`PLINTH_`" + ` and is not known is reported at the
start and has no effect.

The password of the database may be in the DSN, in the variable` + "`PLINTH_DB_PASSWORD`" + `, or in
a file that ` + "`?password_file=`" + ` in the DSN or ` + "`PLINTH_DB_PASSWORD_FILE`" + ` names.
`

// flagReference returns the text of docs/flags.md.
func flagReference(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, cmd := range withFlags(root) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
		groups, _ := sections(cmd)
		if len(groups.Order) == 0 {
			tabulate(&b, cmd.Flags())
		}
		for _, name := range groups.Order {
			fmt.Fprintf(&b, "\n### %s\n", name)
			tabulate(&b, groups.FlagSets[name])
		}
	}
	return b.Bytes()
}

// withFlags returns the commands of root, and theirs, that have flags.
func withFlags(root *cobra.Command) (out []*cobra.Command) {
	for _, cmd := range root.Commands() {
		switch {
		case !cmd.IsAvailableCommand() || cmd.Name() == "completion":
		case cmd.HasSubCommands() && !cmd.Flags().HasAvailableFlags():
			out = append(out, withFlags(cmd)...)
		case cmd.Flags().HasAvailableFlags():
			out = append(append(out, cmd), withFlags(cmd)...)
		}
	}
	return out
}

// tabulate writes a table of flags.
func tabulate(b *bytes.Buffer, flags *pflag.FlagSet) {
	b.WriteString("\n| flag | variable | default | meaning |\n|---|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		usage, variable := cutVariable(usage, f)
		if placeholder != "" && f.Value.Type() != "bool" {
			name += " " + strings.ToUpper(placeholder)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, variable, defaultOf(f), strings.ReplaceAll(usage, "|", "\\|"))
	})
}

// cutVariable splits the variable that documentEnv has added from a flag's usage.
func cutVariable(usage string, f *pflag.Flag) (text, variable string) {
	text, found := strings.CutSuffix(usage, " ["+envName(f.Name)+"]")
	if !found {
		return text, ""
	}
	return text, "`" + envName(f.Name) + "`"
}

// defaultOf returns a flag's default value as users write it; empty if the flag has none.
func defaultOf(f *pflag.Flag) string {
	value := f.DefValue
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	if value == "" || value == "<nil>" || f.Value.Type() == "bool" && value == "false" {
		return ""
	}
	return "`" + value + "`"
}
