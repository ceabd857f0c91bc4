package mysql

import (
	"context"
	"errors"

	"github.com/plinth-io/plinth/sqlstore"
)

var errTODO = errors.New("not written yet")

func (l *Log) Transact(ctx context.Context, ask sqlstore.Ask, decide func(*sqlstore.Found) (sqlstore.Decision, error)) error {
	return errTODO
}

func (l *Log) Keys(ctx context.Context, from, to string, revision int64, limit int) ([]sqlstore.Row, error) {
	return nil, errTODO
}

func (l *Log) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) { return nil, errTODO }

func (l *Log) Cut(ctx context.Context, through int64) (found int64, err error) { return 0, errTODO }

func (l *Log) Leases(ctx context.Context, ids []int64) (leases []sqlstore.Lease, now int64, err error) {
	return nil, 0, errTODO
}

func (l *Log) Renew(ctx context.Context, ids []int64) ([]sqlstore.Lease, error) { return nil, errTODO }

func (l *Log) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	return nil, 0, errTODO
}

func (l *Log) Beat(ctx context.Context, most int64) (shifted int64, err error) { return 0, errTODO }
