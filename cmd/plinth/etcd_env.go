package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// etcdEnvPrefix begins etcd's own variables: ETCD_DATA_DIR stands for --data-dir.
const etcdEnvPrefix = "ETCD_"

func etcdEnvName(flag string) string {
	return etcdEnvPrefix + strings.TrimPrefix(envName(flag), "PLINTH_")
}

// applyEtcdEnv sets the flags of etcd that neither the command line nor a variable of plinth has
// set from etcd's variables. An empty variable counts as none.
func applyEtcdEnv(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := etcdEnvName(f.Name)
		value := os.Getenv(name)
		if err != nil || value == "" || given(flags, f) || !isEtcds(f) {
			return
		}
		if ignored, ok := f.Value.(*ignoredFlag); ok && !slices.Contains(strings.Fields(etcdRefused), f.Name) {
			*ignored.given = append(*ignored.given, name)
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = explain(name, setErr)
		}
		_ = flags.SetAnnotation(f.Name, fromEnv, []string{name}) // the flag is there
	})
	return err
}

// isEtcds tells whether etcd has a flag, with the same meaning.
func isEtcds(f *pflag.Flag) bool {
	return f.Name != "help" && len(f.Annotations[oursAlone]) == 0
}

// warnOfEtcdVariables names, in one record, the variables in environ that look like etcd's and
// stand for no flag. help is the command that shows the flags.
func warnOfEtcdVariables(flags *pflag.FlagSet, environ []string, help string, logger *slog.Logger) {
	known := []string{"ETCD_VERSION"} // which images have
	flags.VisitAll(func(f *pflag.Flag) {
		if isEtcds(f) {
			known = append(known, etcdEnvName(f.Name))
		}
	})
	var unknown []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, etcdEnvPrefix) && !slices.Contains(known, name) && !notOurs.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		logger.Warn("these variables have no effect on plinth; see "+help, "variables", strings.Join(unknown, ","))
	}
}
