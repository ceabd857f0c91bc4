package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envName is the variable that stands in for a flag: PLINTH_DATA_DIR for --data-dir.
func envName(flag string) string {
	return "PLINTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// documentEnv names each flag's variable in its help text.
func documentEnv(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage += " [" + envName(f.Name) + "]"
	})
}

// applyEnv sets the flags that were not given from the environment. An empty variable
// counts as none.
func applyEnv(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(envName(f.Name))
		if f.Changed || value == "" || err != nil || f.Name == "help" {
			return
		}
		if setErr := cmd.Flags().Set(f.Name, value); setErr != nil {
			err = explain(envName(f.Name), setErr)
		}
	})
	return err
}

// flagError explains what the parser found wrong on the command line.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return explain("--"+invalid.GetFlag().Name, err)
	}
	return usagef("%v; see %s --help", err, cmd.CommandPath())
}

// explain says what to write instead of a value that source gave.
func explain(source string, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%s: %v", source, err)
	}
	write := map[string]string{"duration": "a duration such as 30s or 5m", "int": "a whole number"}
	kind := invalid.GetFlag().Value.Type()
	if write[kind] == "" {
		return usagef("%s: %q: %v", source, invalid.GetValue(), invalid.Unwrap())
	}
	return usagef("%s: %q: write %s", source, invalid.GetValue(), write[kind])
}
