package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
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

const importHelp = `Take the objects of a kube-apiserver into an empty database for plinth serve.

They are read from an etcd that runs, from a snapshot (etcdctl snapshot save), or from the database of a
kine, such as that of k3s, as they were at one revision. The source is only read.

Without --follow, stop the kube-apiservers first: what they write later is not taken. With --follow the
import goes on with all changes. When it says that it is in step, stop the kube-apiservers and then end
the import with Ctrl-C: it takes the rest, and the database is ready for plinth serve. With
--until-quiet it ends by itself when nobody has written anything for so long.

Objects keep their uids, creation times, generations and managed fields. They get new
resourceVersions, above those of the source, so that clients list anew. If the kube-apiserver encrypts
objects, give its configuration: they are encrypted by it in the database, too, and plinth serve
needs it.

At the end a report says what was taken and what was not, and why. --dry-run prints it without
writing anything. An import that is interrupted leaves a database that is not served; the error says
how to empty it.`

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
		Short: "Take the objects of a kube-apiserver into an empty database",
		Long:  importHelp,
		Args:  noArgs,
		Example: `  plinth import --etcd snapshot.db --dsn sqlite://plinth-data/plinth.db
  plinth import --etcd https://127.0.0.1:2379 --follow --dsn postgres://plinth@db.example.com/plinth \
    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key
  plinth import --kine sqlite:///var/lib/rancher/k3s/server/db/state.db --dsn sqlite://plinth-data/plinth.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text})
			logging.Libraries(slog.New(slog.DiscardHandler), 0) // their errors come back as such
			return o.run(cmd.Context(), log, cmd.OutOrStdout())
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
			followFlag(&o.follow, "go on with the changes of the source until Ctrl-C, which takes the rest"),
			{Name: "until-quiet", Set: period(&o.quiet, 0), Help: "with --follow: end when nobody has written anything for that `time`, such as 30s"},
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

func (o *importOptions) run(ctx context.Context, log *slog.Logger, stdout io.Writer) error {
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
	im := &upstream.Import{Layout: layout, Encryption: providers, Progress: importProgress(log), Tell: o.telling(log)}
	if err := warnSilence(log, func() error { return o.open(ctx, im) }); err != nil {
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
		log.Warn("objects were not taken; the report says which and why", "objects", n)
	}
	if at := stillRuns(layout, report); at != "" && !o.snapshot() && !o.dryRun {
		log.Warn("a kube-apiserver runs, or was killed a moment ago; what it writes from now on is not taken", "address", at)
	}
	if o.output != "" {
		return printAs(stdout, o.output, report)
	}
	return o.print(stdout, report)
}

// warnSilence warns if the source takes long to be opened.
func warnSilence(log *slog.Logger, open func() error) error {
	const patience = 4 * time.Second
	warning := time.AfterFunc(patience, func() { log.Warn("no answer from the source yet; waiting for it") })
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

// telling returns a function that logs where an import that follows is, and what keeps any from going on.
func (o *importOptions) telling(log *slog.Logger) func(upstream.Step) {
	inStep, ending := false, false
	return func(s upstream.Step) {
		away := s.Away.Round(time.Second)
		var why []any
		if s.Err != nil {
			why = append(why, "error", oneLine(s.Err))
		}
		if away > 0 { // what has just begun was never away
			why = append(why, "for", away)
		}
		switch {
		case s.Err != nil && s.Ending:
			log.Warn("the rest cannot be taken now; trying again until another Ctrl-C, which ends at once and leaves a database that is not served", why...)
		case s.Err != nil && !o.follow:
			log.Warn("cannot go on now; waiting", why...)
		case s.Err != nil:
			log.Warn("cannot go on now; trying again", why...)
		case s.Back && s.Revision == 0: // within the objects
			log.Info("goes on again", "after", away)
		case s.Back:
			log.Info("goes on again", "after", away, "revision", s.Revision, "behind", s.Behind)
		case s.Ending && !ending:
			ending = true
			log.Info("taking the rest; another Ctrl-C ends at once and leaves a database that is not served")
		case s.Ending:
			log.Info("took the rest", "revision", s.Revision, "behind", s.Behind, "changes", s.Changes)
		case !inStep && s.Behind < nearlyInStep:
			inStep = true
			log.Info("in step with the source; stop the kube-apiservers, then press Ctrl-C here", "revision", s.Revision, "behind", s.Behind)
		default:
			log.Info("following", "revision", s.Revision, "behind", s.Behind, "changes", s.Changes)
		}
	}
}

// nearlyInStep is how many revisions an import may be behind for an end that takes no time.
const nearlyInStep = 1000

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

// importProgress returns a function that logs progress every now and then.
func importProgress(log *slog.Logger) func(objects, of int64) {
	told := time.Now()
	return func(objects, of int64) {
		if time.Since(told) >= tellEvery {
			told = time.Now()
			log.Info("importing", "objects", objects, "keys", of)
		}
	}
}

func notTaken(r upstream.Report) (n int) {
	for _, s := range r.NotTaken {
		n += len(s.Keys)
	}
	return n
}

// stillRuns returns the address of a kube-apiserver that had not stopped, or "".
func stillRuns(l *upstream.Layout, r upstream.Report) string {
	for _, s := range r.LeftOut {
		for _, key := range s.Keys {
			if at, found := strings.CutPrefix(key, l.Prefix()+"masterleases/"); found {
				return at
			}
		}
	}
	return ""
}

// print writes the report for people.
func (o *importOptions) print(w io.Writer, r upstream.Report) error {
	var b strings.Builder
	verb := "imported"
	if o.dryRun {
		verb = "would import"
	}
	for _, of := range r.Resources {
		name := of.Resource
		if of.Group != "" {
			name += "." + of.Group
		}
		fmt.Fprintf(&b, "%8d  %s", of.Objects, name)
		for _, from := range slices.Sorted(maps.Keys(of.Converted)) {
			fmt.Fprintf(&b, ", %d converted from %s", of.Converted[from], from)
		}
		b.WriteByte('\n')
	}
	printSkips(&b, "left out", r.LeftOut)
	printSkips(&b, "not taken", r.NotTaken)
	fmt.Fprintf(&b, "%s %d objects of %d resources; the revision of the source is %d\n", verb, r.Objects, len(r.Resources), r.Revision)
	if o.follow {
		b.WriteString("all changes up to there are taken; start plinth serve\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printSkips prints one line for each reason, with the first keys.
func printSkips(b *strings.Builder, what string, skips []upstream.SkipReport) {
	const most = 3
	for _, s := range skips {
		keys := strings.Join(s.Keys[:min(most, len(s.Keys))], " ")
		if len(s.Keys) > most {
			keys += " …"
		}
		fmt.Fprintf(b, "%8d  %s: %s: %s\n", len(s.Keys), what, printable(oneLine(errors.New(s.Why))), printable(keys))
	}
}
