package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestWarnOfVariables(t *testing.T) {
	serve, _, err := newRoot().Find([]string{"serve"})
	must(t, err)
	var out bytes.Buffer
	warnOfVariables(serve, []string{
		"PLINTH_LISTN=127.0.0.1:1", "PLINTH_DB_PASWORD=s3cret", "PLINTH_FROBNICATE=s3cret", // these three
		"PLINTH_LISTEN=127.0.0.1:1", "PLINTH_DB_PASSWORD=s3cret", "PLINTH_FROM=sqlite://a.db", "PLINTH_OUT=out",
		"PLINTH_TEST_POSTGRES=postgres://u:s3cret@h/db", "PLINTH_BENCH_X=1", "PLINTH=1", "OTHER=1",
		"PLINTH_SERVICE_HOST=10.96.0.9", "PLINTH_SERVICE_PORT_HTTPS=6443", "PLINTH_PORT=tcp://10.96.0.9:6443", "PLINTH_API_PORT=tcp://10.96.0.9:6443",
		"PLINTH_PORT_6443_TCP=tcp://10.96.0.9:6443", "PLINTH_PORT_6443_TCP_ADDR=10.96.0.9", "PLINTH_1_NAME=/x/plinth_1", "PLINTH_ENV_HOME=/",
	}, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	want := `level=WARN msg="this variable is not known and has no effect; did you mean PLINTH_LISTEN?" variable=PLINTH_LISTN
level=WARN msg="this variable is not known and has no effect; did you mean PLINTH_DB_PASSWORD?" variable=PLINTH_DB_PASWORD
level=WARN msg="this variable is not known and has no effect; see plinth serve --help" variable=PLINTH_FROBNICATE
`
	if out.String() != want {
		t.Errorf("printed %s, want %s", out.String(), want)
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// TestBadValues checks that errors about values of flags are in plinth's words, not in those of
// Go's parsers.
func TestBadValues(t *testing.T) {
	keepUpstreamFlags(t)
	each(newRoot(), func(cmd *cobra.Command, f *pflag.Flag) {
		for _, value := range []string{"nonsense!", `"a`, "1e999", "-", "=", ","} {
			err := cmd.ParseFlags([]string{"--" + f.Name + "=" + value})
			if err == nil {
				continue
			}
			text := flagError(cmd, err).Error()
			for _, bad := range []string{"strconv", "parsing", "parse error", "invalid syntax", "invalid argument"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s --%s=%s: %s", cmd.CommandPath(), f.Name, value, text)
				}
			}
		}
	})
}

// keepUpstreamFlags undoes at the test's end what it sets: these flags are variables of upstream's package, which all commands
// of the process share, and which get 0 by a value that cannot be parsed.
func keepUpstreamFlags(t *testing.T) {
	tolerationFlags.VisitAll(func(f *pflag.Flag) {
		before := f.Value.String()
		t.Cleanup(func() { must(t, f.Value.Set(before)) })
	})
}

// each calls do for each flag of each command.
func each(root *cobra.Command, do func(*cobra.Command, *pflag.Flag)) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { do(cmd, f) })
		each(cmd, do)
	}
}
