package main

import (
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/dialects/nearest"
)

// envName is the variable that stands in for a flag: PLINTH_DATA_DIR for --data-dir.
func envName(flag string) string {
	return "PLINTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// withVariables has variables stand for the flags that a command has by now.
func withVariables(cmd *cobra.Command) {
	documentEnv(cmd)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := applyEnv(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// documentEnv names each flag's variable in its help text.
func documentEnv(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage += " [" + envName(f.Name) + "]"
	})
}

// fromEnv marks a flag whose value is that of a variable, which it names.
const fromEnv = "plinth_from_env"

// applyEnv sets the flags that were not given from the environment. An empty variable
// counts as none.
func applyEnv(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(envName(f.Name))
		if given(cmd.Flags(), f) || value == "" || err != nil || f.Name == "help" {
			return
		}
		if setErr := cmd.Flags().Set(f.Name, value); setErr != nil {
			err = explain(envName(f.Name), setErr)
		}
		_ = cmd.Flags().SetAnnotation(f.Name, fromEnv, []string{envName(f.Name)}) // the flag is there
	})
	return err
}

// given tells whether a flag has been set, under its name or an old one.
func given(flags *pflag.FlagSet, f *pflag.Flag) bool {
	return f.Changed || slices.ContainsFunc(f.Annotations[otherName], flags.Changed)
}

// source names what has set a flag, as the user wrote it: the flag or its variable.
func source(f *pflag.Flag) string {
	if variable := f.Annotations[fromEnv]; len(variable) > 0 {
		return variable[0]
	}
	return "--" + f.Name
}

// otherVariables are the variables that plinth reads besides those of flags.
var otherVariables = []string{"PLINTH_DB_PASSWORD", "PLINTH_DB_PASSWORD_FILE"}

// notOurs are variables that others set: this project's tests and benchmarks, and
// Kubernetes and Docker for a Service or container that is called plinth.
var notOurs = regexp.MustCompile(`^PLINTH_(TEST|BENCH)|_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$|_NAME$|_ENV_`)

// warnOfVariables reports the variables in environ that look like plinth's and have no
// effect on cmd. They are no error: a variable may be meant for another version.
func warnOfVariables(cmd *cobra.Command, environ []string, logger *slog.Logger) {
	known := variables(cmd.Root())
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "PLINTH_") || slices.Contains(known, name) || notOurs.MatchString(name) {
			continue
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if meant := nearest.Of(strings.TrimPrefix(name, "PLINTH_"), withoutPrefix(known)); meant != "" {
			hint = "did you mean PLINTH_" + meant + "?"
		}
		logger.Warn("this variable is not known and has no effect; "+hint, "variable", name)
	}
}

// variables returns the names of the variables that some command reads.
func variables(root *cobra.Command) []string {
	names := slices.Clone(otherVariables)
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, envName(f.Name)) })
		names = append(names, variables(cmd)...)
	}
	return names
}

func withoutPrefix(variables []string) []string {
	var names []string
	for _, name := range variables {
		names = append(names, strings.TrimPrefix(name, "PLINTH_"))
	}
	return names
}

// flagError explains what the parser found wrong on the command line.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		return explain("--"+invalid.GetFlag().Name, err)
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		what, _ := pflag.UnquoteUsage(empty.GetFlag())
		return usagef("--%s needs a value; write --%[1]s %s", empty.GetFlag().Name, strings.ToUpper(what))
	}
	return usagef("%v; see %s --help", err, cmd.CommandPath())
}

// unknownFlag is the error for a flag that cmd does not have. A single dash may be followed by a
// whole name, because some programs write all flags with one dash.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	word, given := err.GetSpecifiedName(), "--"+err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		word, _, _ = strings.Cut(letters, "=")
		given = "-" + word
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if meant := nearest.Of(word, names); meant != "" {
		return usagef("unknown flag %s; did you mean --%s?", given, meant)
	}
	return usagef("unknown flag %s; see %s --help", given, cmd.CommandPath())
}

// toWrite says how to write the values of a flag, by the flag's type. Types that take any text
// are left out.
var toWrite = map[string]string{
	"bool":        "true or false",
	"duration":    "a duration such as 30s or 5m",
	"ip":          "an IP address such as 192.0.2.10",
	"int":         "a whole number",
	"int32":       "a whole number",
	"int64":       "a whole number",
	"uint":        "a whole number",
	"uint32":      "a whole number",
	"uint64":      "a whole number",
	"intSlice":    "whole numbers separated by commas",
	"int32Slice":  "whole numbers separated by commas",
	"float32":     "a number such as 0.5",
	"float64":     "a number such as 0.5",
	"stringSlice": "words separated by commas, without quotes",
}

// explain says what to write instead of a value that source gave.
func explain(source string, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%s: %v", source, err)
	}
	write := toWrite[invalid.GetFlag().Value.Type()]
	if write == "" {
		return usagef("%s: %q: %v", source, invalid.GetValue(), invalid.Unwrap())
	}
	return usagef("%s: %q: write %s", source, invalid.GetValue(), write)
}
