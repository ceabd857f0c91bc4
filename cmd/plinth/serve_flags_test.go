package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPasswordOnCommandLine(t *testing.T) {
	const inFlag = "postgres://u:hunter2@h/d"
	for _, tt := range []struct {
		flag, variable string
		warned         bool
	}{
		{inFlag, "", true},
		{"postgres://u@h/d", "", false},
		{"", inFlag, false},
		{"sqlite://a:b@c", "", false},
	} {
		t.Run("", func(t *testing.T) {
			t.Setenv("PLINTH_DSN", tt.variable)
			o := newServeOptions()
			cmd := &cobra.Command{}
			flags := addFlags(cmd, o.flags()...)
			if tt.flag != "" {
				if err := cmd.Flags().Set("dsn", tt.flag); err != nil {
					t.Fatal(err)
				}
			}
			if err := applyEnv(cmd); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			warnOfPassword(flags, &o.config.DSN, slog.New(slog.NewTextHandler(&out, nil)))
			if got := strings.Contains(out.String(), "PLINTH_DB_PASSWORD_FILE"); got != tt.warned || strings.Contains(out.String(), "hunter2") {
				t.Errorf("%+v: %s", tt, out.String())
			}
		})
	}
}
