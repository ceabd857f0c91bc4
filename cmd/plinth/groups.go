package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
)

// sections returns the flags of cmd by group, and the names of the flags that have no group.
func sections(cmd *cobra.Command) (groups cliflag.NamedFlagSets, ungrouped []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if group := f.Annotations[inGroup]; len(group) > 0 {
			set := groups.FlagSet(group[0])
			set.SortFlags = false
			set.AddFlag(f)
		} else if f.Name != "help" && !f.Hidden {
			ungrouped = append(ungrouped, f.Name)
		}
	})
	return groups, ungrouped
}

// groupFlags makes the help of own show its flags in groups. Commands below it, which inherit the
// function, have few.
func groupFlags(own *cobra.Command) {
	own.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != own {
			own.Root().HelpFunc()(cmd, args)
			return
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", cmd.Long, cmd.UseLine(), cmd.Example)
		groups, _ := sections(cmd)
		for _, name := range groups.Order { // cliflag.PrintSections would sort the flags
			fmt.Fprintf(out, "\n%s:\n%s", name, flagUsages(groups.FlagSets[name], columns(out)))
		}
	})
}

// columns returns the width of the help.
func columns(out io.Writer) int {
	const least, most = 80, 160
	if isTerminal(out) {
		if width, _, err := term.GetSize(int(fileOf(out).Fd())); err == nil {
			return max(least, min(width, most))
		}
	}
	return helpColumns
}

// helpColumns is the width of the help that does not go to a terminal.
const helpColumns = 100

// foldFlags makes the help of a program's commands fold what it says of flags.
func foldFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("folded", func(cmd *cobra.Command, flags *pflag.FlagSet) string {
		return flagUsages(flags, columns(cmd.OutOrStdout()))
	})
	template := strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages", "folded . .LocalFlags")
	root.SetUsageTemplate(strings.ReplaceAll(template, ".InheritedFlags.FlagUsages", "folded . .InheritedFlags"))
}

// flagUsage is a line of pflag's: the flag, and what it is for.
var flagUsage = regexp.MustCompile(`^( +(?:-., )?--\S+(?: \S+)?) {3,}(.*)$`)

// flagUsages says what flags are for. Unlike pflag's own text it fits the width when names are long.
func flagUsages(flags *pflag.FlagSet, width int) string {
	var heads, texts []string
	for line := range strings.Lines(flags.FlagUsages()) {
		if found := flagUsage.FindStringSubmatch(strings.TrimSuffix(line, "\n")); found != nil {
			heads, texts = append(heads, found[1]), append(texts, found[2])
		} else {
			heads, texts = append(heads, strings.TrimSpace(line)), append(texts, "")
		}
	}
	return usageTable(heads, texts, width)
}

// usageTable writes heads and, beside or below them, texts.
func usageTable(heads, texts []string, width int) string {
	const widest = 36
	indent := 0
	for _, head := range heads {
		indent = min(max(indent, len(head)+3), widest)
	}
	var b strings.Builder
	for i, head := range heads {
		b.WriteString(head)
		at := len(head)
		if at > indent-2 {
			b.WriteByte('\n')
			at = 0
		}
		b.WriteString(strings.Repeat(" ", indent-at))
		foldText(&b, texts[i], indent, width)
		b.WriteByte('\n')
	}
	return b.String()
}

// foldText writes words into lines from column indent on.
func foldText(b *strings.Builder, text string, indent, width int) {
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
}
