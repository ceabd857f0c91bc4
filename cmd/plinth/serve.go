package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/memory"
)

const serveHelp = `Serve the Kubernetes API over HTTPS until SIGTERM or SIGINT.

Every flag can also be set by the environment variable in brackets. The flag has precedence.

The database (--dsn) is one of
  sqlite://plinth.db                   a file, for one process at a time
  postgres://user:password@host/db     or postgresql://; any number of plinths may share it
  mysql://user:password@host/db        or mariadb://; MySQL 8, MariaDB 10.6 and later; likewise
The password may also be in the variable PLINTH_DB_PASSWORD, or in a file that
PLINTH_DB_PASSWORD_FILE names.

The data directory has the certificates (pki/) and the kubeconfig of the admin. The first start
creates both; later starts keep them.`

func newServe() *cobra.Command {
	o := newServeOptions()
	var flags *flagTable
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Kubernetes API",
		Long:  serveHelp,
		Args:  noArgs,
		Example: `  plinth serve
  plinth serve --dsn postgres://plinth@db.example.com/plinth --listen 0.0.0.0:6443 \
    --tls-san plinth.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.nameFlags(&o.config, o.run(cmd, flags))
		},
	}
	flags = addInOrder(cmd, o.flags()...)
	withVariables(cmd)
	groupFlags(cmd)
	return cmd
}

// serveOptions is what the flags of serve set.
type serveOptions struct {
	config     server.Config
	logging    logging.Options
	keep       keepOptions
	components componentOptions
	release    releaseOptions
	gates      string
	privileged bool
	ui         bool // the page is served
}

func newServeOptions() *serveOptions {
	return &serveOptions{
		config:  server.Config{Audit: audit.NewOptions(), Authentication: authn.NewOptions(), Authorization: authz.NewOptions()},
		logging: logging.Options{Format: logging.Text},
	}
}

// run serves until the command's context ends.
func (o *serveOptions) run(cmd *cobra.Command, flags *flagTable) error {
	if err := o.release.emulate(); err != nil {
		return err
	}
	if err := setFeatureGates(o.gates); err != nil {
		return err
	}
	if err := flags.check(); err != nil {
		return err
	}
	var err error
	if err = o.keep.apply(&o.config); err != nil {
		return err
	}
	if o.config.Components, err = o.components.make(flags, &o.config); err != nil {
		return err
	}
	if o.components.on && !flags.given(&o.config.LeaseCommitDelay) {
		o.config.LeaseCommitDelay = clusterCommitDelay
	}
	if o.ui {
		o.config.Page = uiPage(o.config.Authentication)
	}
	o.begin(cmd.ErrOrStderr())
	warnOfVariables(cmd, os.Environ(), o.config.Log)
	o.config.Flags = shownFlags(cmd)
	begun := func() { warnOfPassword(flags, &o.config.DSN, o.config.Log) }
	return serve(cmd.Context(), o.config, o.logging.Verbosity, cmd.OutOrStdout(), begun)
}

// begin opens the log, and sets what upstream's libraries keep for the whole process.
func (o *serveOptions) begin(stderr io.Writer) {
	o.logging.Dial = logging.NewDial(o.logging.Verbosity)
	o.config.Debugging.SetVerbosity = o.logging.Dial.Set
	o.config.Log = logging.New(stderr, o.logging)
	capabilities.Setup(o.privileged, 0)
}

// releaseOptions say as which release of Kubernetes plinth behaves.
type releaseOptions struct{ emulated, compatible []string }

// emulate is called before anything asks for a feature.
func (o *releaseOptions) emulate() error {
	if err := kind.Emulate(o.emulated, o.compatible); err != nil {
		return usagef("--emulated-version, --min-compatibility-version: %v; write a minor version such as %s.%s, or leave them out", err, kind.Major, kind.Minor)
	}
	return nil
}

// setFeatureGates switches upstream's features, for the whole process.
func setFeatureGates(list string) error {
	for _, item := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(item, "=")
		if _, err := strconv.ParseBool(strings.TrimSpace(value)); err != nil && item != "" {
			return usagef("--feature-gates: %q: write %s=true or %[2]s=false", item, strings.TrimSpace(name))
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(list); err != nil {
		return usagef("--feature-gates: %v", err)
	}
	return nil
}

// shownFlags are a command's flags as /flagz shows them.
func shownFlags(cmd *cobra.Command) flagz.Reader {
	return flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{cmd.Name(): cmd.Flags()}}}
}

// warnOfPassword warns of a password on the command line, which every user of the machine can
// read.
func warnOfPassword(flags *flagTable, dsn *string, logger *slog.Logger) {
	f := flags.lookup(dsn)
	if _, fromVariable := f.Annotations[fromEnv]; f.Changed && !fromVariable && dialects.HasPassword(*dsn) {
		logger.Warn("the password in --dsn is shown to every user of this machine by ps; write it in PLINTH_DB_PASSWORD, or in a file that PLINTH_DB_PASSWORD_FILE names")
	}
}

// serve runs a server until ctx ends, then stops it gracefully. It calls begun when the server has
// started: what begun says must not hide why a start has failed.
func serve(ctx context.Context, c server.Config, verbosity logging.Verbosity, stdout io.Writer, begun func()) error {
	if c.EventTTL == 0 {
		c.EventTTL = -1
	}
	return runServer(ctx, c, verbosity, func(s *server.Server) {
		begun()
		fmt.Fprint(stdout, exportLine(s))
	})
}

// exportLine is what users of a server paste into a shell.
func exportLine(s *server.Server) string {
	return fmt.Sprintf("export KUBECONFIG=%s   # serving %s\n", shellQuote(s.KubeconfigPath()), s.URL())
}

// runServer runs a server until ctx ends, then stops it gracefully. It calls ready when the server
// is.
func runServer(ctx context.Context, c server.Config, verbosity logging.Verbosity, ready func(*server.Server)) error {
	silence := logging.Libraries(c.Log, verbosity)
	c.Memory = limitMemory(c.Memory, c.Log)
	defer memory.Keep()()
	s := server.New(c)
	if err := open(ctx, s); err != nil {
		if ctx.Err() != nil {
			c.Log.Info("stopped before plinth was ready", "err", oneLine(err))
			return nil
		}
		return err
	}
	ready(s)
	notify(c.Log, readyState(s.URL()))
	<-ctx.Done()
	c.Log.Info("stopping", "reason", context.Cause(ctx))
	notify(c.Log, stoppingState)
	silence()
	return s.Close()
}

// limitMemory keeps the process within given bytes, or GOMEMLIMIT, or the memory limit of its container, and
// returns which it is; 0 if there is none.
func limitMemory(given int64, logger *slog.Logger) int64 {
	if given > 0 {
		memory.LimitTo(given)
		return given
	}
	limit, err := memory.Limit()
	switch {
	case err != nil:
		logger.Warn("cannot read the container's memory limit; set GOMEMLIMIT to nine tenths of it, or to off", "err", err)
	case limit > 0:
		logger.Info("memory is limited to 90% of what the container may use; GOMEMLIMIT sets another limit", "limitMiB", limit>>20)
	}
	if limit = memory.InForce(); limit == 0 {
		return 0
	}
	return max(limit, server.LeastMemory)
}

// shellQuote quotes a path if a shell would change it otherwise.
func shellQuote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
