package fielderr_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/plinth-io/plinth/server/fielderr"
)

// flag names fields as a command line might.
func flag(field fielderr.Name) string {
	return "--" + strings.ToLower(strings.ReplaceAll(string(field), ".", "-"))
}

func TestText(t *testing.T) {
	empty := fielderr.Errorf("%v is empty: write %q", fielderr.Name("Listen"), "a:1")
	both := fielderr.Errorf("%v needs %v", fielderr.Name("Key"), fielderr.Name("Cert"))
	for _, tt := range []struct {
		err              error
		inGo, inFlags    string
		wrapped, missing error
	}{
		{empty, `Config.Listen is empty: write "a:1"`, `--listen is empty: write "a:1"`, nil, fs.ErrExist},
		{fmt.Errorf("open: %w; %w", empty, both), `open: Config.Listen is empty: write "a:1"; Config.Key needs Config.Cert`, `open: --listen is empty: write "a:1"; --key needs --cert`, empty, nil},
		{fielderr.Below("TLS", both), "Config.TLS.Key needs Config.TLS.Cert", "--tls-key needs --tls-cert", both, empty},
		{fielderr.Below("A", fmt.Errorf("x: %w", fielderr.Below("TLS", both))), "x: Config.A.TLS.Key needs Config.A.TLS.Cert", "x: --a-tls-key needs --a-tls-cert", both, nil},
		{fielderr.Errorf("%v: %w", fielderr.Name("File"), fs.ErrNotExist), "Config.File: file does not exist", "--file: file does not exist", fs.ErrNotExist, fs.ErrExist},
		{fielderr.Errorf("%v: %w", fielderr.Name("Outer"), both), "Config.Outer: Config.Key needs Config.Cert", "--outer: --key needs --cert", both, nil},
		{utilerrors.NewAggregate([]error{both, fs.ErrExist}), "[Config.Key needs Config.Cert, file already exists]", "[--key needs --cert, file already exists]", fs.ErrExist, nil},
		{fs.ErrExist, "file already exists", "file already exists", nil, nil},
	} {
		if got := tt.err.Error(); got != tt.inGo {
			t.Errorf("got %s, want %s", got, tt.inGo)
		}
		if got := fielderr.Text(tt.err, flag); got != tt.inFlags {
			t.Errorf("got %s, want %s", got, tt.inFlags)
		}
		if tt.wrapped != nil && !errors.Is(tt.err, tt.wrapped) {
			t.Errorf("%v does not wrap %v", tt.err, tt.wrapped)
		}
		if tt.missing != nil && errors.Is(tt.err, tt.missing) {
			t.Errorf("%v wraps %v", tt.err, tt.missing)
		}
	}
	if got := both.Fields(); !slices.Equal(got, []fielderr.Name{"Key", "Cert"}) {
		t.Errorf("fields %v", got)
	}
	if fielderr.Below("A", nil) != nil {
		t.Error("no error has become one")
	}
}
