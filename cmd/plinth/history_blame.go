package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const blameHelp = `Show who last changed each line of an object's YAML: the user, the field manager, the time and the
revision of the change that last set the line's value.

Fields are followed by their path, so that moving text does not count as a change. List items are
matched by the merge keys of their list, by name or key, or otherwise by content. A line that opens
a map or a list belongs to the change that created the map or list. ^ before a revision means that
the line has this revision or an older one: older versions are not kept.`

// blameQuery is the command's flags.
type blameQuery struct {
	historyFlags
	at, output string
	view       past.View
}

func newBlame() *cobra.Command {
	var q blameQuery
	cmd := &cobra.Command{
		Use:   "blame TYPE/NAME",
		Short: "Show who last changed each line of an object's YAML",
		Long:  blameHelp,
		Example: `  plinth blame deployments/web -n shop
  plinth blame deployments/web -n shop --at 2h
  plinth blame configmaps/settings -o json`,
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	q.add(cmd, false,
		atFlag(&q.at, "`moment` whose object is shown; by default now"),
		showManagedFlag(&q.view.All, showManagedHelp),
		outputFlag(&q.output, outputHelp, "json", "yaml"),
	)
	return cmd
}

func (q *blameQuery) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	at, err := momentOf("at", q.at)
	if err != nil {
		return err
	}
	client, target, err := q.object(cmd, args, true)
	if err != nil {
		return err
	}
	lines, err := client.History.Blame(cmd.Context(), target, at, q.view)
	if err != nil {
		return err
	}
	if q.output != "" {
		return printAs(cmd.OutOrStdout(), q.output, blamed(lines))
	}
	if err := q.show(cmd, func(s *screen) error { return printBlame(s, lines) }); err != nil || !slices.ContainsFunc(lines, func(l past.Line) bool { return l.Older }) {
		return err
	}
	return tellKept(cmd, client, nil)
}

// blamedLine is a line for programs.
type blamedLine struct {
	Line  int    `json:"line"`
	Text  string `json:"text"`
	Older bool   `json:"older,omitempty"` // than the change, which is the oldest that is kept
	historyv1.Description
}

func blamed(lines []past.Line) []blamedLine {
	out := make([]blamedLine, len(lines))
	for i, line := range lines {
		out[i] = blamedLine{i + 1, line.Text, line.Older, line.Change.Description}
	}
	return out
}

// printBlame prints revision, person, manager, time and text of each line. Lines of one change below each
// other have its description once, for people; every line has it for programs.
func printBlame(s *screen, lines []past.Line) error {
	rows := make([][]string, len(lines))
	var widths [4]int
	for i, line := range lines {
		rows[i] = blameColumns(s, line)
		for j, text := range rows[i] {
			text = printable(text)
			rows[i][j] = text
			widths[j] = max(widths[j], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	for i, line := range lines {
		again := s.terminal && i > 0 && lines[i-1].Change == line.Change
		for j, text := range rows[i] {
			padded := text + strings.Repeat(" ", widths[j]-utf8.RuneCountInString(text)+2)
			if again {
				padded = strings.Repeat(" ", widths[j]+2)
			}
			b.WriteString(s.paint([]string{yellow, bold, plain, faint}[j], padded))
		}
		b.WriteString("│ " + printable(line.Text) + "\n")
	}
	_, err := io.WriteString(s, b.String())
	return err
}

func blameColumns(s *screen, line past.Line) []string {
	d := line.Change.Description
	revision := fmt.Sprint(d.Revision)
	if line.Older {
		revision = "^" + revision
	}
	when := d.Time.UTC().Format(time.RFC3339)
	if s.terminal {
		when = d.Time.Local().Format("2006-01-02 15:04")
	}
	return []string{revision, past.Person(d), past.Manager(d), when}
}
