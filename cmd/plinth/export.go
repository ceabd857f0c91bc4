package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const exportHelp = "Write the objects of a database as kube-apiserver " + kind.Major + "." + kind.Minor + ` keeps them, so that it goes on from there.

They are written to a file, which etcdutl snapshot restore takes, or to an etcd that runs and has
nothing below the prefix. In a file, objects keep their resourceVersions; an etcd that runs gives them
new ones. The database is read at one revision and is not changed. Stop plinth first: what is written
later is not exported.

If plinth serve encrypts objects, give its configuration: kube-apiserver needs the same. Events keep
what remains of their time. At the end a report says what was written and what was not, and why.
--dry-run prints it without writing anything. After an error nothing is left in the target, unless the
error says so.`

// exportOptions are the flags of export.
type exportOptions struct {
	etcd       upstream.Etcd
	from, to   string
	prefix     string
	encryption encryption.Options
	eventTTL   time.Duration
	dryRun     bool
	output     string
}

func newExport() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the objects of a database as kube-apiserver keeps them in etcd",
		Long:  exportHelp,
		Args:  noArgs,
		Example: `  plinth export --dsn sqlite://plinth-data/plinth.db --etcd snapshot.db
  plinth export --dsn postgres://plinth@db.example.com/plinth --etcd https://127.0.0.1:2379 \
    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text})
			logging.Libraries(slog.New(slog.DiscardHandler), 0) // their errors come back as such
			return o.run(cmd.Context(), logger, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, slices.Concat(
		[]Flag{
			dsnFlag(&o.from, "`database` to read"),
			etcdFlag(&o.to, "`URL` of an etcd, or several of its members separated by commas, or a file to make"),
		},
		etcdClientFlags(&o.etcd),
		[]Flag{
			prefixFlag(&o.prefix, "what the keys begin with, kube-apiserver's --etcd-prefix"),
			encryptionConfigFlag(&o.encryption.ConfigFile, "with the EncryptionConfiguration of plinth serve"),
			eventTTLFlag(&o.eventTTL, "how long Events stay after their last change; 0: for ever"),
			reportOnlyFlag(&o.dryRun),
			outputFlag(&o.output, outputHelp, "json", "yaml"),
		},
	)...)
	withVariables(cmd)
	return cmd
}

func (o *exportOptions) check() error {
	switch {
	case o.from == "":
		return usagef("write the database: --dsn sqlite://plinth-data/plinth.db")
	case o.to == "" && !o.dryRun:
		return usagef("write the target: --etcd FILE for a snapshot, or --etcd URL; or --dry-run to print the report only")
	case (o.etcd.CertFile == "") != (o.etcd.KeyFile == ""):
		return usagef("--etcd-certfile and --etcd-keyfile go together; write both")
	case isAddress(o.to):
		return usagef("--etcd %[1]s: write the URL of an etcd, such as http://%[1]s, or ./%[1]s for a file of that name", o.to)
	case o.eventTTL < 0:
		return usagef("--event-ttl %v is negative; write a duration such as 1h, or 0 to keep Events for ever", o.eventTTL)
	case dialects.InMemory(o.from):
		return usagef("--dsn: a database in memory is empty; write sqlite://PATH or a server's DSN")
	}
	return checkOutput(o.output)
}

// isAddress tells whether somebody has written HOST:PORT, as etcdctl takes it, for a URL.
func isAddress(etcd string) bool {
	_, port, err := net.SplitHostPort(etcd)
	_, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && !strings.ContainsAny(etcd, "/")
}

func (o *exportOptions) run(ctx context.Context, logger *slog.Logger, stdout io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	layout, err := upstream.NewLayout(o.prefix)
	if err != nil {
		return usagef("--prefix: %v; write %s", err, upstream.DefaultPrefix)
	}
	providers, err := encryption.Open(o.encryption, "export")
	if err != nil {
		return usagef("--encryption-provider-config: %v", err)
	}
	defer providers.Close()
	source, err := openLog(ctx, "--dsn", o.from, dialects.Options{MustExist: true})
	if err != nil {
		return unlessEnded(ctx, aboutKind(err))
	}
	defer source.Close()
	if served, err := servedNow(ctx, source); err == nil && served && !o.dryRun {
		logger.Warn("a plinth serves the database, or was killed a moment ago; what it writes from now on is not exported", "dsn", dialects.Describe(o.from))
	}
	ex := &upstream.Export{From: source, Layout: layout, Encryption: providers, EventTTL: o.eventTTL, Progress: progressLog(logger, "exporting", "of")}
	if err := ex.Survey(ctx); err != nil { // before the target is made
		return unlessEnded(ctx, o.explain(err))
	}
	ex.Abandoning = func(err error) { logger.Warn("the export has failed; what it has written is removed", "err", err) }
	report, err := o.write(ctx, ex)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	o.warn(logger, report)
	if o.output != "" {
		return printAs(stdout, o.output, report)
	}
	return o.print(stdout, report)
}

// unlessEnded returns err, or that the command was ended and has left nothing.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, upstream.ErrLeft) {
		return errors.New("interrupted; nothing is left in the target; export again")
	}
	return err
}

// explain says what to do about the error of a survey.
func (o *exportOptions) explain(err error) error {
	var sealed *upstream.SealedError
	switch {
	case errors.Is(err, upstream.ErrNoObjects):
		return usagef("--dsn: %v; write the DSN of a database that plinth has served", err)
	case errors.Is(err, changelog.ErrHalfCopied):
		return fmt.Errorf("--dsn: %w; export from the database that has all", err)
	case errors.As(err, &sealed) && o.encryption.ConfigFile == "":
		return usagef("%d objects are encrypted, among them %s; write --encryption-provider-config with the file of plinth serve", sealed.Keys, sealed.First)
	case errors.As(err, &sealed):
		return usagef("--encryption-provider-config: %v; write the file of plinth serve, with all keys that it has used", err)
	}
	return aboutKind(err)
}

// write writes to the target, unless this is a dry run.
func (o *exportOptions) write(ctx context.Context, ex *upstream.Export) (upstream.ExportReport, error) {
	if o.dryRun {
		return ex.Try(ctx)
	}
	if !strings.Contains(o.to, "://") {
		target, err := upstream.CreateSnapshot(o.to)
		if errors.Is(err, upstream.ErrExists) {
			return upstream.ExportReport{}, usagef("--etcd: %v; write the name of a file to make", err)
		}
		if err != nil {
			var detail *fs.PathError
			if errors.As(err, &detail) {
				err = detail.Err // without the name of a temporary file
			}
			return upstream.ExportReport{}, usagef("--etcd: %s: %v; %s", o.to, err, whereToWrite(err))
		}
		return ex.Run(ctx, target)
	}
	o.etcd.URLs = strings.Split(o.to, ",")
	target, done, err := upstream.ToEtcd(ctx, o.etcd, ex.Layout)
	var notEmpty *upstream.NotEmptyError
	if errors.As(err, &notEmpty) {
		return upstream.ExportReport{}, fmt.Errorf("--etcd: %s: %w; write the URL of an empty etcd; if an export that was killed has left them, and nothing else is in this etcd, remove them: etcdctl del --prefix %s", o.to, err, ex.Layout.Prefix())
	}
	if err != nil {
		return upstream.ExportReport{}, aboutEtcd("--etcd", err, "the URL of another one, or the name of a file to make")
	}
	defer done()
	return ex.Run(ctx, target)
}

// warn logs what the user must not overlook.
func (o *exportOptions) warn(logger *slog.Logger, r upstream.ExportReport) {
	lost := 0
	for _, s := range r.NotWritten {
		lost += len(s.Keys)
	}
	if lost > 0 {
		logger.Warn("objects were not written; the report says which and why", "objects", lost)
	}
	if !o.dryRun && r.EtcdRevision < r.Revision {
		logger.Warn("clients may have seen revisions that the etcd has not reached yet; restart them, or export to a file",
			"plinth", r.Revision, "etcd", r.EtcdRevision)
	}
}

// print writes the report for people.
func (o *exportOptions) print(w io.Writer, r upstream.ExportReport) error {
	var b strings.Builder
	printResources(&b, r.Resources, "to")
	printSkips(&b, "left out", r.LeftOut)
	printSkips(&b, "not written", r.NotWritten)
	if o.dryRun {
		fmt.Fprintf(&b, "would export %d objects of %d resources at revision %d\n", r.Objects, len(r.Resources), r.Revision)
	} else {
		fmt.Fprintf(&b, "exported %d objects of %d resources at revision %d; the etcd's revision is %d\n", r.Objects, len(r.Resources), r.Revision, r.EtcdRevision)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
