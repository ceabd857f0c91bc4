package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/units"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

const verifyHelp = `Look for damage in a backup or in a database, and print a line for each problem.

In a backup the command compares the checksum. In a database it checks that each version follows the
one before, and that the index and the view objects are equal to the table. In both it decodes every
object and compares it with its key, and checks that revisions and times are in order. An object
that an older release has stored in a version that this release cannot read is not damaged, but it
is reported as a problem.

A database is only read, even while a plinth serves it; a SQLite database has to be on the same
machine. Nothing is created, changed or locked. Encrypted objects are counted, and decoded with
--encryption-provider-config. The name - stands for standard input.

The exit code is 0 if there is no problem, 1 if there is one, or something could not be read,
and 2 if the command was wrong.`

// verification is the command's flags and streams.
type verification struct {
	encryption     string
	digest         bool
	stdout, stderr io.Writer
	problems       []scrub.Problem // of a backup, until it is known whether that is as it was written
	found          int
}

func newVerify() *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use:   "verify FILE|DSN",
		Short: "Look for damage in a backup or in a database",
		Long:  verifyHelp,
		Example: `  plinth verify monday.plinth
  plinth verify sqlite://plinth-data/plinth.db
  plinth verify postgres://plinth@db.example.com/plinth`,
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := oneFile(args, "the file of a backup, or the DSN of a database")
			if err != nil {
				return err
			}
			v.stdout, v.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return v.run(cmd.Context(), what)
		},
	}
	addFlags(cmd,
		encryptionConfigFlag(&v.encryption, "with the EncryptionConfiguration that serve has, to decode encrypted objects"),
		Flag{Name: "digest", Set: boolean(&v.digest, false), Help: "print the digest of all objects of a database, which GET /plinth/digest of each plinth on it returns at the same revision"},
	)
	return cmd
}

func (v *verification) run(ctx context.Context, what string) error {
	logging.Libraries(slog.New(slog.DiscardHandler), 0) // they log what is found, too
	o := scrub.Options{Served: builtin.CheckStored, Found: v.print}
	if v.encryption != "" {
		keys, err := encryption.Open(encryption.Options{ConfigFile: v.encryption}, uuid.NewString())
		if err != nil {
			return usagef("--encryption-provider-config: %v", err)
		}
		defer keys.Close()
		o.Transformer = keys
	}
	begin := time.Now()
	look := v.file
	if strings.Contains(what, "://") {
		look = v.database
	}
	about, report, err := look(ctx, what, o)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted before all was read")
	case err != nil:
		return err
	case report.Problems > 0:
		return fmt.Errorf("%s: %s in %s", about, countOf(int(report.Problems), "problem"), countOf(int(report.Rows+report.Old), "row"))
	}
	objects := countOf(int(report.Objects), "object") + " and "
	if report.Objects == 0 && report.Rows > 0 { // a file with history does not say how many there are
		objects = ""
	}
	fmt.Fprintf(v.stdout, "%s: no problem in %s%s, %s, in %s%s\n",
		about, objects, countOf(int(report.Rows+report.Old), "row"), units.Bytes(report.Bytes), secondsText(time.Since(begin)), encryptedText(report.Encrypted))
	return nil
}

// mostProblems bounds what is printed of a database that somebody has changed from end to end.
const mostProblems = 1000

func (v *verification) print(p scrub.Problem) {
	switch v.found++; {
	case v.found <= mostProblems:
		fmt.Fprintln(v.stdout, oneLine(errors.New(p.String())))
	case v.found == mostProblems+1:
		fmt.Fprintln(v.stdout, "There are more.")
	}
}

// keep remembers a problem for print, and one more than that prints.
func (v *verification) keep(p scrub.Problem) {
	if len(v.problems) <= mostProblems {
		v.problems = append(v.problems, p)
	}
}

func encryptedText(rows int64) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("; %d rows are encrypted and were not decoded", rows)
}

// file looks at a backup. Of one that was cut off or altered that alone is said: what its rows seem to have
// follows from it.
func (v *verification) file(ctx context.Context, name string, o scrub.Options) (about string, report scrub.Report, err error) {
	bar := newBar(v.stderr, "rows")
	defer bar.end()
	o.Progress = func(rows, _ int64) { bar.tell(rows, 0) }
	o.Found = v.keep
	err = withBackup(name, func(from io.Reader) (err error) {
		var h backup.Header
		h, report, err = backup.Verify(ctx, from, o)
		about = fmt.Sprintf("backup of cluster %s at revision %d, taken at %s", h.Cluster, h.Revision, h.Time.Format(time.RFC3339))
		return err
	})
	if err == nil {
		for _, p := range v.problems {
			v.print(p)
		}
	}
	return about, report, err
}

// database looks at a database.
func (v *verification) database(ctx context.Context, dsn string, o scrub.Options) (about string, report scrub.Report, err error) {
	if err := dialects.Check(dsn, dialects.Options{}); err != nil {
		return "", report, usagef("%v", err)
	}
	log, err := peekAt(ctx, dsn)
	if err != nil {
		return "", report, err
	}
	defer log.Close()
	if v.digest {
		if err := v.printDigest(ctx, log, o.Transformer); err != nil {
			return "", report, err
		}
	}
	size, err := log.Size(ctx)
	if err != nil && errors.Is(err, changelog.ErrUnavailable) {
		return "", report, err
	}
	bar := newBar(v.stderr, "rows")
	defer bar.end()
	o.Progress = func(rows, _ int64) { bar.tell(rows, size.Rows+size.Past) }
	report, err = scrub.Log(ctx, log, o)
	if errors.Is(err, changelog.ErrKind) {
		err = fmt.Errorf("%s: %w", dialects.Describe(dsn), err)
	}
	return fmt.Sprintf("cluster %s at revision %d", log.ClusterID(), report.Head.Revision), report, err
}

// printDigest prints what every plinth on the database should have in memory.
func (v *verification) printDigest(ctx context.Context, log changelog.Source, t sqlstore.Transformer) error {
	return log.Freeze(ctx, func(z changelog.Frozen) error {
		d, err := object.Digest(ctx, z, t)
		if err != nil {
			return err
		}
		fmt.Fprintf(v.stdout, "digest %s of %d objects at revision %d%s\n", d.Text(), d.Objects, d.Revision, encryptedText(d.Unreadable))
		return nil
	})
}

// peekAt opens a database for reading alone.
func peekAt(ctx context.Context, dsn string) (changelog.Source, error) {
	log, err := dialects.Peek(ctx, dsn, dialects.Options{})
	if errors.Is(err, changelog.ErrNoLog) {
		return nil, usagef("%v; write the DSN of a database that plinth has served", err)
	}
	if errors.Is(err, changelog.ErrUnavailable) && dialects.Scheme(dsn) != "sqlite" {
		return nil, fmt.Errorf("read %s: %w; check that it runs and takes connections from here, or write another DSN", dialects.Describe(dsn), err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dialects.Describe(dsn), err)
	}
	return log, nil
}
