package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// printable writes control characters of a text as \u001b, and bytes that are no UTF-8 as \x9b. Names of users
// and field managers, labels, and what admission webhooks say may have any: on a terminal they could hide
// lines, or say what nobody has said. Tabs are kept; line ends are kept by printableLines.
func printable(text string) string { return escaped(text, "\t") }

func printableLines(text string) string { return escaped(text, "\t\n") }

func escaped(text, kept string) string {
	if strings.IndexFunc(text, deceptive) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case deceptive(r) && !strings.ContainsRune(kept, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// deceptive tells whether a terminal does something else with a character than to show it: control characters,
// ends of lines, and what changes the direction of text.
func deceptive(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// tell writes a line to standard error.
func tell(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), printable(fmt.Sprintf(format, args...)))
}

// console is where commands write text: it shows control characters, wherever they come from. Colours and
// progress, which are the program's own, go around it (ownOf).
type console struct {
	out  io.Writer
	held []byte // the beginning of a character whose end has not come yet
}

// streamTo returns what commands write to: a console if out is a terminal, else out.
func streamTo(out io.Writer) io.Writer {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &console{out: file}
	}
	return out
}

// fileOf returns the file behind a stream of the program, nil if it is something else.
func fileOf(stream any) *os.File {
	switch s := stream.(type) {
	case *os.File:
		return s
	case *console:
		return fileOf(s.out)
	}
	return nil
}

// ownOf returns the stream for what has no control characters but the program's own.
func ownOf(out io.Writer) io.Writer {
	if file := fileOf(out); file != nil {
		return file
	}
	return out
}

// Write implements io.Writer.
func (c *console) Write(p []byte) (int, error) {
	text := append(c.held, p...)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	_, err := io.WriteString(c.out, printableLines(string(text[:whole])))
	c.held = append([]byte(nil), text[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
