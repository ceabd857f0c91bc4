package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPagerOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "less",
		"PAGER=more":                    "more",
		"PAGER=more PLINTH_PAGER=less.": "less.",
		"PLINTH_PAGER=cat":              "",
		"PAGER=cat":                     "",
		"PAGER=":                        "",
		"PAGER= PLINTH_PAGER=most":      "most",
		"PAGER=more PLINTH_PAGER=":      "",
		"PAGER=cat PLINTH_PAGER=most":   "most",
	} {
		env := map[string]string{}
		for _, variable := range strings.Fields(text) {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
		if got := pagerOf(func(name string) (string, bool) { value, set := env[name]; return value, set }); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestPaged has a pager that reads all, one that ends before, and one that is not there.
func TestPaged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shown")
	out, err := os.Create(file)
	must(t, err)
	defer out.Close()
	must(t, paged(out, "cat", func(w io.Writer) error {
		_, err := io.WriteString(w, "text\n")
		return err
	}))
	if text, _ := os.ReadFile(file); string(text) != "text\n" {
		t.Errorf("shown is %q", text)
	}
	broken := errors.New("broken")
	if err := paged(out, "cat", func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error became %v", err)
	}
	endless := func(w io.Writer) error {
		for {
			if _, err := fmt.Fprintln(w, "more"); err != nil {
				return err
			}
		}
	}
	if err := paged(out, "head -n 1", endless); err != nil {
		t.Errorf("a pager that ends: %v", err)
	}
	if err := paged(out, "no-such-pager-here 2>/dev/null", endless); err == nil || !strings.Contains(err.Error(), "--no-pager") {
		t.Errorf("a pager that is not there: %v", err)
	}
}

func TestScreenColors(t *testing.T) {
	t.Parallel()
	for color, want := range map[string]string{"always": "\x1b[32m+a\x1b[m\n b\n", "never": "+a\n b\n", "auto": "+a\n b\n"} {
		var b bytes.Buffer
		s := (&historyFlags{color: color}).plainScreen(&b)
		must(t, s.diff([]string{"+a", " b"}))
		if b.String() != want {
			t.Errorf("--color=%s: %q", color, b.String())
		}
	}
}

func TestScreenWhen(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-3 * time.Hour)
	if got := (&screen{terminal: true}).when(at); got != "3h ago" {
		t.Errorf("for people: %s", got)
	}
	if got := new(screen).when(at); got != at.UTC().Format(time.RFC3339) {
		t.Errorf("for programs: %s", got)
	}
}

// TestTable writes blocks, whose columns only become wider, and colours that take no width.
func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	rows := newTable(&screen{Writer: &b}, "A", "B")
	must(t, rows.flush())
	if b.Len() > 0 {
		t.Errorf("titles without rows: %q", b.String())
	}
	must(t, rows.add(cell{red, "é"}, cell{plain, "1"}))
	must(t, rows.flush())
	must(t, rows.add(cell{plain, "long"}, cell{plain, "2"}))
	must(t, rows.flush())
	must(t, rows.add(cell{plain, "c"}, cell{plain, "3"}))
	must(t, rows.flush())
	if want := "A   B\né   1\nlong   2\nc      3\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	rows = newTable(&screen{Writer: &b, color: true}, "A", "B")
	must(t, rows.add(cell{red, "xx"}, cell{plain, "1"}))
	must(t, rows.flush())
	if want := "\x1b[2mA\x1b[m    \x1b[2mB\x1b[m\n\x1b[31mxx\x1b[m   1\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
