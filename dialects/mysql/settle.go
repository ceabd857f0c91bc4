package mysql

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// InnoDB shows a commit to other sessions before the commit is on the disk (in its storage/innobase/trx,
// commit_in_memory comes before trx_flush_log_if_needed), and loses it if the server is killed in
// between. The session that commits is told of success only afterwards, but whoever reads has seen what
// never was. So rows of others are shown only after a commit of our own, which is on the disk only with
// all commits before it.

// settle returns when the rows up to id, which were seen, are as durable as the server's settings make
// a commit. It writes only if they are not known to be.
func (l *database) settle(ctx context.Context, id int64) error {
	if id <= l.durable.Load() {
		return nil
	}
	query := `
		INSERT INTO meta (name, value) VALUES ('settled', '1')
		ON DUPLICATE KEY UPDATE value = CAST(value AS SIGNED) + 1`
	if l.galera.Load() { // a row for each node, so that they do not get into each other's way
		query = `
		INSERT INTO meta (name, value) VALUES (CONCAT('settled/', LEFT(@@wsrep_node_name, 50)), '1')
		ON DUPLICATE KEY UPDATE value = CAST(value AS SIGNED) + 1`
	}
	err := l.again(ctx, func() error {
		_, err := l.db.ExecContext(ctx, query)
		return err
	})
	if readOnly(code(err)) {
		return nil // nobody commits here any more
	}
	if err != nil {
		return fmt.Errorf("make sure that rows are on the disk: %w", err)
	}
	l.settled(id)
	return nil
}

// settled notes that the rows up to id are durable, as after a commit that was acknowledged.
func (l *database) settled(id int64) {
	for old := l.durable.Load(); id > old; old = l.durable.Load() {
		if l.durable.CompareAndSwap(old, id) {
			return
		}
	}
}

// settleRows is settle for rows in the order of their ids, which were read without an error.
func (l reader) settleRows(ctx context.Context, rows []changelog.Row, err error) error {
	if err != nil || len(rows) == 0 {
		return err
	}
	return l.settle(ctx, rows[len(rows)-1].Revision)
}
