package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server/etcd"
	"github.com/plinth-io/plinth/server/logging"
)

const etcdHelp = `Serve etcd's API on a SQL database until SIGTERM or SIGINT, for kube-apiservers of any
release, k3s, kubeadm, and all other clients of etcd.

Flags have etcd's names where etcd has such a flag. Every flag can also be set by the environment
variable in brackets, or by etcd's own, such as ETCD_NAME. The flag has precedence, then the
variable in brackets. Flags of etcd that make no sense here, such as those about peers, have no
effect, and one warning names them.

The database (--dsn) is written as for "plinth serve", or as for kine. It has only the keys of
etcd's clients: "plinth serve" needs another database. Any number of these servers may share a
database in Postgres, MySQL or MariaDB; each is a member that answers by itself.`

// etcdOptions are what the flags of etcd set.
type etcdOptions struct {
	table *flagTable

	dsn             string
	databaseTimeout time.Duration
	dataDir         string
	newDatabase     bool
	cacheBytes      byteSize
	unsafe          bool

	listen, listenHTTP, listenMetrics, advertise []string
	plaintext                                    bool
	shutdownTimeout                              time.Duration

	tls        etcdTLS
	compaction etcdCompaction
	server     etcd.Options
	transport  etcd.TransportOptions

	level   string
	logging logging.Options
	logger  *slog.Logger
	ignored []string // flags that were given and have no effect
	refused []string // and those that must not be ignored

	defaultName string // of the database in the data directory
}

func newEtcdOptions() *etcdOptions {
	return &etcdOptions{
		cacheBytes:  8 << 20,
		logging:     logging.Options{Format: logging.Text},
		defaultName: "etcd.db",
	}
}

func newEtcd() *cobra.Command {
	o := newEtcdOptions()
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Serve etcd's API on a SQL database",
		Long:  etcdHelp,
		Args:  noArgs,
		Example: `  plinth etcd
  plinth etcd --dsn postgres://plinth@db.example.com/etcd --listen-client-urls https://0.0.0.0:2379 \
    --cert-file etcd.crt --key-file etcd.key --trusted-ca-file ca.crt --client-cert-auth
  plinth etcd --dsn mysql://plinth@tcp(db.example.com:3306)/etcd \
    --listen-client-urls unix:///run/plinth/etcd.sock`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEtcdEnv(cmd.Flags()); err != nil {
				return err
			}
			return o.table.nameFlags(&o.tls.serving, o.serve(cmd))
		},
	}
	o.table = addInOrder(cmd, o.flags()...)
	o.addOthers(cmd.Flags())
	withVariables(cmd)
	groupFlags(cmd)
	cmd.AddCommand(newEtcdImport())
	return cmd
}

// serve answers until the command's context ends.
func (o *etcdOptions) serve(cmd *cobra.Command) error {
	if err := o.begin(cmd); err != nil {
		return err
	}
	warnOfVariables(cmd, os.Environ(), o.logger)
	warnOfEtcdVariables(cmd.Flags(), os.Environ(), "plinth etcd --help", o.logger)
	return o.run(cmd.Context(), cmd.OutOrStdout(), nil, func() { warnOfPassword(o.table, &o.dsn, o.logger) })
}

// begin checks what can be known to be wrong without any I/O, and opens the log.
func (o *etcdOptions) begin(cmd *cobra.Command) error {
	if err := o.openLog(cmd); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	o.warn()
	return nil
}

// warn tells what flags do not do, or what they cost.
func (o *etcdOptions) warn() {
	warnOfIgnored(o.logger, o.ignored)
	if o.unsafe {
		o.logger.Warn("--unsafe-no-fsync: writes do not wait for the disk, and a crash of the machine may lose them or damage the database")
	}
}

// openLog opens the log at the level that --log-level or --v ask for.
func (o *etcdOptions) openLog(cmd *cobra.Command) error {
	least := slog.LevelDebug
	switch o.level {
	case "debug":
		o.logging.Verbosity = max(o.logging.Verbosity, 1)
	case "info":
	case "warn":
		least = slog.LevelWarn
	case "error":
		least = slog.LevelError
	case "dpanic", "panic", "fatal":
		least = slog.LevelError + 1
	default:
		return usagef("--log-level: %q: write debug, info, warn or error", o.level)
	}
	o.logging.Dial = logging.NewDial(o.logging.Verbosity)
	o.logger = slog.New(atLeast{logging.New(cmd.ErrOrStderr(), o.logging).Handler(), least})
	return nil
}

// atLeast is a Handler that leaves out records below a level.
type atLeast struct {
	slog.Handler
	least slog.Level
}

// Enabled implements slog.Handler.
func (a atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= a.least && a.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (a atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{a.Handler.WithAttrs(attrs), a.least}
}

// WithGroup implements slog.Handler.
func (a atLeast) WithGroup(name string) slog.Handler {
	return atLeast{a.Handler.WithGroup(name), a.least}
}
