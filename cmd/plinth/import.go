package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

const importHelp = `Import the objects of a kube-apiserver into an empty database for plinth serve.

They are read from a running etcd, from a snapshot (etcdctl snapshot save), or from the database of
a kine, such as that of k3s, as they were at one revision. The source is only read.

Without --follow, stop the kube-apiservers first: later writes are not imported. With --follow the
import continues with all changes. When it says that it is in step, stop the kube-apiservers and
then end the import with Ctrl-C: it reads the remaining changes, and the database is ready for
plinth serve. With --until-quiet it ends by itself after this time without a write.

Objects keep their uids, creation times, generations and managed fields. They get new
resourceVersions, above those of the source, so that clients list again. If the kube-apiserver
encrypts objects, name its configuration: it also encrypts them in the database, and plinth serve
needs it.

At the end a report says which objects were imported and which were not, and why. --dry-run prints
it without writing anything. plinth does not serve the database of an interrupted import; the error
says how to empty it.`

// importOptions are the flags of import.
type importOptions struct {
	etcd       upstream.Etcd
	from, kine string
	to         string
	prefix     string
	encryption encryption.Options
	follow     bool
	quiet      time.Duration
	dryRun     bool
	output     string
}

func newImport() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the objects of a kube-apiserver into an empty database",
		Long:  importHelp,
		Args:  noArgs,
		Example: `  plinth import --etcd snapshot.db --dsn sqlite://plinth-data/plinth.db
  plinth import --etcd https://127.0.0.1:2379 --follow --dsn postgres://plinth@db.example.com/plinth \
    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key
  plinth import --kine sqlite:///var/lib/rancher/k3s/server/db/state.db --dsn sqlite://plinth-data/plinth.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text})
			logging.Libraries(slog.New(slog.DiscardHandler), 0) // their errors come back as such
			return o.run(cmd.Context(), logger, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, slices.Concat(
		[]Flag{etcdFlag(&o.from, "`URL` of an etcd, or several separated by commas, or the file of a snapshot")},
		etcdClientFlags(&o.etcd),
		[]Flag{
			{Name: "kine", Set: text(&o.kine, ""), Complete: schemes, Help: "`database` of kine, as kine and k3s take it, or as --dsn"},
			prefixFlag(&o.prefix, "what the keys of the kube-apiserver begin with, its --etcd-prefix"),
			encryptionConfigFlag(&o.encryption.ConfigFile, "of the kube-apiserver with an EncryptionConfiguration"),
			dsnFlag(&o.to, "empty `database` to write to"),
			followFlag(&o.follow, "continue with the changes of the source until Ctrl-C, and then read the remaining ones"),
			{Name: "until-quiet", Set: period(&o.quiet, 0), Help: "with --follow: end after this `time` without a write, such as 30s"},
			reportOnlyFlag(&o.dryRun),
			outputFlag(&o.output, outputHelp, "json", "yaml"),
		},
	)...)
	withVariables(cmd)
	return cmd
}

func (o *importOptions) check() error {
	switch {
	case o.from == "" && o.kine == "":
		return usagef("write where to read: --etcd URL, --etcd FILE for a snapshot, or --kine DSN")
	case o.from != "" && o.kine != "":
		return usagef("--etcd and --kine: write one of them")
	case o.to == "" && !o.dryRun:
		return usagef("write the database: --dsn sqlite://plinth.db; or --dry-run to print the report only")
	case (o.etcd.CertFile == "") != (o.etcd.KeyFile == ""):
		return usagef("--etcd-certfile and --etcd-keyfile go together; write both")
	case !o.dryRun && dialects.InMemory(o.to):
		return usagef("--dsn: a database in memory is gone at the end of the import; write sqlite://PATH or a server's DSN")
	}
	if err := o.checkFollow(); err != nil {
		return err
	}
	if !o.dryRun {
		if err := dialects.Check(o.to, dialects.Options{}); err != nil {
			return usagef("--dsn: %v", err)
		}
	}
	return checkOutput(o.output)
}

func (o *importOptions) checkFollow() error {
	switch {
	case o.quiet < 0:
		return usagef("--until-quiet: %v is no time to wait; write 30s", o.quiet)
	case o.quiet > 0 && !o.follow:
		return usagef("--until-quiet goes with --follow; write both")
	case o.follow && o.dryRun:
		return usagef("--follow writes, and --dry-run does not; leave one out")
	case o.kine == "" && isAddress(o.from):
		return usagef("--etcd %[1]s: write the URL of an etcd, such as http://%[1]s, or ./%[1]s for a file of that name", o.from)
	case o.follow && o.snapshot():
		return usagef("--follow: a snapshot does not change; write the URL of the etcd, or leave --follow out")
	}
	return nil
}

// snapshot tells whether --etcd names a file.
func (o *importOptions) snapshot() bool { return o.kine == "" && !strings.Contains(o.from, "://") }

func (o *importOptions) run(ctx context.Context, logger *slog.Logger, stdout io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	layout, err := upstream.NewLayout(o.prefix)
	if err != nil {
		return usagef("--prefix: %v; write %s", err, upstream.DefaultPrefix)
	}
	providers, err := encryption.Open(o.encryption, "import")
	if err != nil {
		return usagef("--encryption-provider-config: %v", err)
	}
	defer providers.Close()
	im := &upstream.Import{Layout: layout, Encryption: providers, Progress: progressLog(logger, "importing", "keys"), Tell: o.telling(logger)}
	if err := warnSilence(logger, func() error { return o.open(ctx, im) }); err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() { closeOne(im.From, ctx.Err()) }()
	if err := im.Survey(ctx); err != nil { // before the target is made
		return unlessInterrupted(ctx, o.explain(err))
	}
	report, err := o.take(ctx, im)
	if err != nil {
		return err
	}
	if n := notTaken(report); n > 0 {
		logger.Warn("objects were not taken; the report says which and why", "objects", n)
	}
	if at := stillRuns(layout, report); at != "" && !o.snapshot() && !o.dryRun {
		logger.Warn("a kube-apiserver runs, or was killed a moment ago; what it writes from now on is not taken", "address", at)
	}
	if o.output != "" {
		return printAs(stdout, o.output, report)
	}
	return o.print(stdout, report)
}

// warnSilence warns if the source takes long to be opened.
func warnSilence(logger *slog.Logger, open func() error) error {
	const patience = 4 * time.Second
	warning := time.AfterFunc(patience, func() { logger.Warn("no answer from the source yet; waiting for it") })
	defer warning.Stop()
	return open()
}

// open opens what --etcd or --kine names.
func (o *importOptions) open(ctx context.Context, im *upstream.Import) (err error) {
	if o.snapshot() {
		if im.From, err = upstream.OpenSnapshot(ctx, o.from); err != nil {
			return usagef("--etcd: %v", err)
		}
		return nil
	}
	var live upstream.LiveSource
	if o.kine != "" {
		live, err = o.openKine(ctx)
	} else {
		o.etcd.URLs = strings.Split(o.from, ",")
		if live, err = upstream.OpenEtcd(ctx, o.etcd); err != nil {
			err = aboutEtcd("--etcd", err, "the URL of another one, or the file of a snapshot")
		}
	}
	if err != nil {
		return err
	}
	im.From = live
	if o.follow {
		im.Follow = &upstream.Follow{From: live, Quiet: o.quiet, GiveUp: secondSignal(ctx)}
	}
	return nil
}

// secondSignal returns a channel that is closed at the second SIGINT or SIGTERM before ctx ends for another
// reason; the first one ends ctx. A third one is not caught.
func secondSignal(ctx context.Context) <-chan struct{} {
	signals, second := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // until the process ends, as the handler of the first signal
		defer signal.Stop(signals)
		<-ctx.Done()
		for range 2 {
			<-signals
		}
		close(second)
	}()
	return second
}

func (o *importOptions) openKine(ctx context.Context) (upstream.LiveSource, error) {
	dsn, err := kine.DSN(o.kine)
	if err == nil {
		err = dialects.Check(dsn, dialects.Options{})
	}
	if err != nil {
		return nil, usagef("--kine: %v", err)
	}
	if dialects.Scheme(dsn) == "sqlite" && dialects.Same(dsn, o.to) {
		return nil, usagef("--dsn: it is kine's own file; write another one")
	}
	source, err := upstream.OpenKine(ctx, dsn, o.follow)
	switch {
	case errors.Is(err, kine.ErrNoTable):
		return nil, usagef("--kine: %v; write the DSN of a database that kine has served", err)
	case err != nil && dialects.Scheme(dsn) != "sqlite":
		return nil, fmt.Errorf("--kine: %w; check that the database runs and takes connections from here, or write another DSN", err)
	case err != nil:
		return nil, fmt.Errorf("--kine: %w", err)
	}
	return source, nil
}

// explain says what to do about the error of a survey.
func (o *importOptions) explain(err error) error {
	var sealed *upstream.SealedError
	switch {
	case errors.Is(err, upstream.ErrNoKeys):
		return usagef("--prefix: there are no keys below %s in %s; write the --etcd-prefix of the kube-apiserver", o.prefix, o.source())
	case errors.As(err, &sealed) && o.encryption.ConfigFile == "":
		return usagef("%d objects are encrypted, among them %s; write --encryption-provider-config with the file of the kube-apiserver", sealed.Keys, sealed.First)
	case errors.As(err, &sealed):
		return usagef("--encryption-provider-config: %v; write the file of the kube-apiserver, with all keys that it has used", err)
	}
	return err
}

// source names the source for people, without passwords.
func (o *importOptions) source() string {
	if o.kine == "" {
		return o.from
	}
	dsn, _ := kine.DSN(o.kine) // it was opened
	return dialects.Describe(dsn)
}

// take writes to the target, unless this is a dry run.
func (o *importOptions) take(ctx context.Context, im *upstream.Import) (upstream.Report, error) {
	if o.dryRun {
		return im.Try(ctx)
	}
	target, err := openLog(ctx, "--dsn", o.to, dialects.Options{})
	if err != nil {
		return upstream.Report{}, unlessInterrupted(ctx, aboutKind(err))
	}
	report, err := im.Run(ctx, target)
	closeOne(target, err)
	switch {
	case err == nil:
		return report, nil
	case errors.Is(err, changelog.ErrNotEmpty):
		return report, fmt.Errorf("--dsn: %s holds objects already; write the DSN of an empty database", dialects.Describe(o.to))
	case errors.Is(err, changelog.ErrHalfCopied) && errors.Is(err, context.Canceled):
		return report, fmt.Errorf("interrupted after %d objects; plinth does not serve what is in %s: import again, which begins anew with it; or, to leave nothing behind, %s",
			report.Objects, dialects.Describe(o.to), emptying(o.to))
	case errors.Is(err, changelog.ErrHalfCopied):
		return report, fmt.Errorf("%w; plinth does not serve it: import again, which begins anew with it; or, to leave nothing behind, %s", err, emptying(o.to))
	case errors.Is(err, transfer.ErrOvertaken):
		return report, err
	case errors.Is(err, changelog.ErrUnavailable) && ctx.Err() == nil:
		return report, fmt.Errorf("%w; mend that, and import again", err)
	}
	return report, unlessInterrupted(ctx, err)
}

// closeOne closes a source or a target. It waits for what is under way, unless the import was interrupted: what a
// silent database does not answer ends with the process.
func closeOne(c io.Closer, err error) {
	closed := make(chan struct{})
	go func() {
		_ = c.Close()
		close(closed)
	}()
	var hurry <-chan time.Time
	if errors.Is(err, context.Canceled) {
		hurry = time.After(closeGrace)
	}
	select {
	case <-closed:
	case <-hurry:
	}
}

// closeGrace is how long a database may take to be closed by a command that was interrupted.
const closeGrace = 500 * time.Millisecond
