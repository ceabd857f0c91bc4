package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"ann":                 "ann",
		"Ünal\t日本 ✓ DOM\\ann": "Ünal\t日本 ✓ DOM\\ann",
		"\x1b[2Jeve":          `\u001b[2Jeve`,
		"a\rb\nc\x00\x7f":     `a\u000db\u000ac\u0000\u007f`,
		"\u009b31m":           `\u009b31m`,
		"\u202eeve\u2066":     `\u202eeve\u2066`,
		"\xff\x9b2J":          `\xff\x9b2J`,
		"\ufffd":              "\ufffd",
		"\u2028":              `\u2028`,
	} {
		if got := printable(text); got != want || printable(got) != got {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := printableLines("a\nb\x1b\n"); got != "a\nb\\u001b\n" {
		t.Errorf("lines: %q", got)
	}
}

// TestConsole writes a text in pieces of each size.
func TestConsole(t *testing.T) {
	t.Parallel()
	text := "Ünal \x1b[2J日本\u009b\n\xff\xfex\U0001F600\n"
	want := "Ünal \\u001b[2J日本\\u009b\n\\xff\\xfex\U0001F600\n"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		c := &console{out: &b}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if written, err := c.Write([]byte(rest[:n])); err != nil || written != n {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}

// TestNoControls shows names that would take over a terminal, by all that shows names.
func TestNoControls(t *testing.T) {
	t.Parallel()
	const evil = "eve\x1b[2J\x1b]0;x\a\r\u009b1A\u202e\xff\nroot"
	d := historyv1.Description{User: evil, Impersonator: evil, Manager: evil, Verb: evil, AuditID: evil, Action: evil,
		Object: historyv1.ObjectReference{Resource: "configmaps", Namespace: evil, Name: evil, Kind: evil}}
	change := historyv1.Change{Description: d}
	command := &cobra.Command{}
	var both bytes.Buffer
	command.SetOut(&console{out: &both})
	command.SetErr(&console{out: &both})
	log := &logQuery{historyFlags: historyFlags{allNamespaces: true}, output: "wide"}
	ready := false
	shows := map[string]func(s *screen) error{
		"log": func(s *screen) error {
			rows := log.table(s, false)
			_ = rows.add(log.row(s, past.One(change), false)...)
			return rows.flush()
		},
		"log --diff": func(s *screen) error {
			return log.printEntry(s, past.Entry{Change: change, Diff: []string{"+" + evil, "-" + evil, evil}}, false)
		},
		"log --follow": func(s *screen) error {
			return (&logTail{q: &logQuery{output: "json"}, s: s}).show(nil, change)
		},
		"blame": func(s *screen) error {
			return printBlame(s, []past.Line{{Text: "  name: " + evil, Change: &historyv1.Version{Description: d}}})
		},
		"get": func(s *screen) error {
			q := &getQuery{output: "name"}
			return q.print(command, nil, s, []ofKind{{objects: []historyv1.Version{{Description: d}}}}, 1)
		},
		"a diff": func(s *screen) error {
			fmt.Fprintln(s, s.paint(bold, sideOf(past.Target{Name: evil}, &historyv1.Version{Description: d})))
			return nil
		},
		"status": func(s *screen) error {
			return (&status{Ready: &ready, Problems: []string{evil}, Server: evil, Version: evil}).print(s.Writer, "")
		},
		"status -o json": func(s *screen) error {
			return (&status{Ready: &ready, Problems: []string{evil}}).print(s.Writer, "json")
		},
		"an error": func(s *screen) error {
			var b bytes.Buffer
			root := &cobra.Command{Use: "plinth", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return fmt.Errorf("refused: %s", evil) }}
			runProgram(root, nil, &b, &b)
			_, err := s.Write(b.Bytes())
			return err
		},
	}
	for name, show := range shows {
		var b bytes.Buffer
		must(t, show(&screen{Writer: &b, color: false}))
		if text := b.String(); !isShown(text) {
			t.Errorf("%s: %q", name, text)
		}
	}
	undo := &undoQuery{}
	_, err := undo.list(command, []*past.Deed{{Object: d.Object, Changes: []historyv1.Change{change}, Others: []historyv1.Change{change}}})
	must(t, err)
	if text := both.String(); !isShown(text) || !strings.Contains(text, "eve") {
		t.Errorf("messages: %q", text)
	}
}

// isShown tells whether a text has nothing but what is shown, and lines of its own.
func isShown(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.Contains(text, "\nroot") && !strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), deceptive)
}
