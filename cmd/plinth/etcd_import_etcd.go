package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// etcdKeysImport takes the keys of an etcd.
type etcdKeysImport struct {
	from   string // URLs, or a file
	client upstream.Etcd
	to     string
	kine   string // that was named, too
	logger *slog.Logger
	pace
}

func (i *etcdKeysImport) check() error {
	var err error
	switch {
	case i.kine != "":
		return usagef("--from-etcd and --from-kine: write one of them")
	case i.to == "":
		return usagef("write the database: --dsn sqlite://etcd.db")
	case isAddress(i.from):
		return usagef("--from-etcd %[1]s: write the URL of an etcd, such as http://%[1]s, or ./%[1]s for a file of that name", i.from)
	case (i.client.CertFile == "") != (i.client.KeyFile == ""):
		return usagef("--etcd-certfile and --etcd-keyfile go together; write both")
	}
	if i.to, err = kine.DSN(i.to); err != nil {
		return usagef("--dsn: %v", err)
	}
	if dialects.InMemory(i.to) {
		return usagef("--dsn: a database in memory is gone at the end of the import; write sqlite://PATH or a server's DSN")
	}
	if err := dialects.Check(i.to, dialects.Options{}); err != nil {
		return usagef("--dsn: %v", err)
	}
	return nil
}

func (i *etcdKeysImport) run(ctx context.Context, stdout io.Writer) error {
	if err := i.check(); err != nil {
		return err
	}
	source, err := i.open(ctx)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer source.Close()
	target, err := openLog(ctx, "--dsn", i.to, dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		return unlessInterrupted(ctx, aboutKind(err))
	}
	defer target.Close()
	im := transfer.Import{Source: "etcd", Revision: source.Revision(), Floor: source.Compacted(), Page: source.Page, Leases: source.Leases, Progress: i.tell}
	rows, err := im.Run(ctx, target)
	switch {
	case errors.Is(err, changelog.ErrNotEmpty):
		return fmt.Errorf("--dsn: %s holds keys already; write the DSN of an empty database", dialects.Describe(i.to))
	case errors.Is(err, changelog.ErrHalfCopied) && ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d rows; plinth does not serve what is in %s: %s, then import again", rows, dialects.Describe(i.to), emptying(i.to))
	case errors.Is(err, changelog.ErrHalfCopied):
		return fmt.Errorf("%w; plinth does not serve it: %s, then import again", err, emptying(i.to))
	case err != nil:
		return unlessInterrupted(ctx, err)
	}
	fmt.Fprintf(stdout, "imported %d keys in %d rows; the revision is %d, compacted up to %d\n", source.Keys(), rows, source.Revision(), source.Compacted())
	return nil
}

// open opens the snapshot. An etcd that runs is asked for one.
func (i *etcdKeysImport) open(ctx context.Context) (*upstream.Raw, error) {
	if !strings.Contains(i.from, "://") {
		source, err := upstream.OpenRaw(ctx, i.from)
		if err != nil {
			return nil, usagef("--from-etcd: %v", err)
		}
		return source, nil
	}
	file, err := os.CreateTemp("", "plinth-etcd-*.db") // which only its owner can read
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // its content stays until it is closed
	i.client.URLs = strings.Split(i.from, ",")
	err = upstream.SaveSnapshot(ctx, i.client, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, aboutEtcd("--from-etcd", err, "the URL of another one, or the file of a snapshot")
	}
	source, err := upstream.OpenRaw(ctx, file.Name())
	if err != nil {
		return nil, fmt.Errorf("--from-etcd: the snapshot of %s: %w", i.from, err)
	}
	return source, nil
}

func (i *etcdKeysImport) tell(rows int64) {
	if i.due() {
		i.logger.Info("importing", "rows", rows)
	}
}
