package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

const etcdImportHelp = `Import the keys of an etcd, or of kine, also that of k3s, into an empty database for plinth etcd.

Keys, values, revisions and the compacted revision stay as they are, so that clients resume their
watches. The command reads a snapshot of an etcd (etcdctl snapshot save), or requests a snapshot
from a running etcd and keeps it in a temporary file meanwhile. No client may write to the etcd any
more. Leases stay, and their times begin again.

kine must not run meanwhile; the command only reads its database. For kine a lease is a time to
live; keys with the same time to live get one lease, whose time begins again, as it does at each
start of kine.

Both databases are written as for plinth etcd, or as for kine. They may be the same database in
Postgres, MySQL or MariaDB, where plinth's tables are beside kine's.`

func newEtcdImport() *cobra.Command {
	var from, fromEtcd, to string
	var client upstream.Etcd
	var flags *flagTable
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the keys of an etcd or of kine into an empty database",
		Long:  etcdImportHelp,
		Args:  noArgs,
		Example: `  plinth etcd import --from-etcd snapshot.db --dsn sqlite:///var/lib/plinth/etcd.db
  plinth etcd import --from-etcd https://127.0.0.1:2379 --dsn postgres://plinth@db.example.com/etcd \
    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key
  plinth etcd import --from-kine sqlite:///var/lib/rancher/k3s/server/db/state.db \
    --dsn sqlite:///var/lib/plinth/etcd.db
  plinth etcd import --from-kine "mysql://kine@tcp(db.example.com:3306)/kubernetes" \
    --dsn postgres://plinth@db.example.com/etcd`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text})
			if fromEtcd != "" {
				logging.Libraries(slog.New(slog.DiscardHandler), 0) // their errors come back as such
				i := &etcdKeysImport{from: fromEtcd, client: client, to: to, kine: from, logger: logger}
				return flags.nameFlags(&client, i.run(cmd.Context(), cmd.OutOrStdout()))
			}
			return flags.nameFlags(&client, importKine(cmd.Context(), from, to, logger, cmd.OutOrStdout()))
		},
	}
	flags = addFlags(cmd, slices.Concat(
		[]Flag{{Name: "from-etcd", Set: text(&fromEtcd, ""), Complete: fileNames, Help: "`URL` of an etcd, or the file of a snapshot"}},
		etcdClientFlags(&client),
		[]Flag{
			{Name: "from-kine", Set: text(&from, ""), Complete: schemes, Help: "`database` of kine"},
			dsnFlag(&to, "empty `database` to write to"),
		},
	)...)
	withVariables(cmd)
	return cmd
}

func importKine(ctx context.Context, from, to string, logger *slog.Logger, stdout io.Writer) error {
	if from == "" || to == "" {
		return usagef("write where to read and where to write: --from-etcd URL, --from-etcd FILE for a snapshot, or --from-kine sqlite://state.db, and --dsn sqlite://etcd.db")
	}
	var err error
	if from, err = kine.DSN(from); err != nil {
		return usagef("--from-kine: %v", err)
	}
	if to, err = kine.DSN(to); err != nil {
		return usagef("--dsn: %v", err)
	}
	if err := dialects.Check(from, dialects.Options{}); err != nil {
		return usagef("--from-kine: %v", err)
	}
	if dialects.InMemory(to) {
		return usagef("--dsn: a database in memory is gone at the end of the import; write sqlite://PATH or a server's DSN")
	}
	if dialects.Scheme(to) == "sqlite" && dialects.Same(from, to) {
		return usagef("--dsn: it is kine's own file; write another one")
	}
	table, err := kine.Open(ctx, from)
	if errors.Is(err, kine.ErrNoTable) {
		return usagef("--from-kine: %v in %s; write the DSN of a database that kine has served", err, dialects.Describe(from))
	}
	if err != nil {
		return unlessInterrupted(ctx, fmt.Errorf("--from-kine: %s: %w", dialects.Describe(from), err))
	}
	defer table.Close()
	extent, err := table.Extent(ctx) // before the target is made
	if err != nil {
		return unlessInterrupted(ctx, fmt.Errorf("--from-kine: %w", err))
	}
	target, err := openLog(ctx, "--dsn", to, dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		return unlessInterrupted(ctx, aboutKind(err))
	}
	defer target.Close()
	i := &kineImport{table: table, extent: extent, living: map[string]kept{}, leases: map[int64]bool{}, logger: logger}
	return i.run(ctx, target, to, stdout)
}

// kineImport turns the rows of kine into plinth's.
type kineImport struct {
	table  *kine.Table
	extent kine.Extent
	logger *slog.Logger

	after  int64           // revision of the last row that was read
	ended  bool            // there is no more
	living map[string]kept // keys, up to that revision
	leases map[int64]bool  // that rows have
	pace
}

// kept is what a key's next row needs to know of it.
type kept struct{ created, version int64 }

func (k *kineImport) run(ctx context.Context, to changelog.Log, dsn string, stdout io.Writer) error {
	im := transfer.Import{Source: "kine", Revision: k.extent.Revision, Floor: k.extent.Compacted, Page: k.page, Leases: k.granted, Progress: k.tell}
	rows, err := im.Run(ctx, to)
	switch {
	case err != nil && ctx.Err() != nil:
		return k.interrupted(to, dsn, rows)
	case errors.Is(err, changelog.ErrNotEmpty):
		return fmt.Errorf("--dsn: %s holds keys already; write the DSN of an empty database", dialects.Describe(dsn))
	case errors.Is(err, changelog.ErrHalfCopied):
		return fmt.Errorf("%w; plinth does not serve it: %s, then import again", err, emptying(dsn))
	case err != nil:
		return err
	}
	fmt.Fprintf(stdout, "imported %d keys in %d rows; the revision is %d, compacted up to %d\n", len(k.living), rows, k.extent.Revision, k.extent.Compacted)
	return nil
}

var errNothingImported = errors.New("interrupted before a key was imported; import again")

// unlessInterrupted returns err, or that the command was ended before it had written anything.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errNothingImported
	}
	return err
}

// interrupted says what an import that was ended has left, and how to go on.
func (k *kineImport) interrupted(to changelog.Log, dsn string, rows int64) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	half := changelog.HalfCopied(ctx, to)
	head, err := to.Head(ctx)
	switch {
	case errors.Is(half, changelog.ErrHalfCopied):
		return fmt.Errorf("interrupted after %d of %d rows; plinth does not serve what is in %s: %s, then import again", rows, k.extent.Rows, dialects.Describe(dsn), emptying(dsn))
	case half == nil && err == nil && head.Revision == 0:
		return errNothingImported
	}
	return fmt.Errorf("interrupted after %d of %d rows; import again, which says how to empty %s if it has some", rows, k.extent.Rows, dialects.Describe(dsn))
}

func (k *kineImport) tell(rows int64) {
	if k.due() {
		k.logger.Info("importing", "rows", rows, "of", k.extent.Rows)
	}
}

// importPage is how many rows are read and written at once.
const importPage = 512

// page returns the next rows in plinth's form.
func (k *kineImport) page(ctx context.Context) ([]changelog.Row, error) {
	for !k.ended {
		found, next, err := k.table.Page(ctx, k.after, importPage)
		if err != nil {
			return nil, err
		}
		if k.after = next; next == 0 {
			k.ended = true
		}
		var rows []changelog.Row
		for _, r := range found {
			if len(r.Key) > changelog.MaxKeyBytes {
				return nil, fmt.Errorf("revision %d: its key has %d bytes, and plinth takes %d at most", r.Revision, len(r.Key), changelog.MaxKeyBytes)
			}
			if row, ok := k.convert(r); ok {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			return rows, nil
		}
	}
	return nil, nil
}

// convert returns the row as plinth has it. It is false for a delete of a key that is not there.
func (k *kineImport) convert(r kine.Row) (changelog.Row, bool) {
	row := changelog.Row{Revision: changelog.FirstID(r.Revision), Key: r.Key, Deleted: r.Deleted, Value: r.Value, Lease: r.Lease}
	if row.Value == nil {
		row.Value = []byte{}
	}
	before, there := k.living[r.Key]
	if r.Deleted {
		delete(k.living, r.Key)
		row.CreateRevision, row.Lease, row.Value = changelog.FirstID(before.created), 0, []byte{}
		return row, there
	}
	now := kept{created: before.created, version: before.version + 1}
	if r.Created || !there {
		now = begun(r)
	}
	k.living[r.Key] = now
	if r.Lease > 0 {
		k.leases[r.Lease] = true
	}
	row.CreateRevision, row.Version = changelog.FirstID(now.created), now.version
	return row, true
}

// begun is what is known of a key whose earlier rows are not there. kine does not count versions: 2
// says that this is not the first.
func begun(r kine.Row) kept {
	if r.CreateRevision > 0 && r.CreateRevision < r.Revision {
		return kept{r.CreateRevision, 2}
	}
	return kept{r.Revision, 1}
}

// granted returns the leases that rows have. For kine, id and time to live are the same number.
func (k *kineImport) granted() (leases []changelog.Lease) {
	for ttl := range k.leases {
		leases = append(leases, changelog.Lease{ID: ttl, TTL: ttl})
	}
	slices.SortFunc(leases, func(a, b changelog.Lease) int { return int(a.ID - b.ID) })
	return leases
}
