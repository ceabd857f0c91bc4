package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// damage judges an error of those who search for damage: what cannot be read of a database that is there wraps
// changelog.ErrDamaged, or nothing; what passes wraps changelog.ErrUnavailable.
func (l *database) damage(err error) error {
	if errors.Is(err, changelog.ErrDamaged) {
		return err
	}
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		switch e.Number {
		case 1030, 1296: // of the storage engine
			if !strings.Contains(e.Message, "No space left") {
				return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
			}
		case noSuchTable:
			return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
		case 1142, 1143, 1028, 1041, 1135, 1317, 1969, 3024: // not allowed, stopped, no memory, too slow
			return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
		}
	}
	if errors.Is(err, sql.ErrNoRows) && !errors.Is(err, changelog.ErrUnavailable) {
		return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
	}
	return l.classify(err)
}

// passes says that err, which damage has judged, is no damage.
func passes(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, changelog.ErrClosed) ||
		errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrDamaged)
}

// Page calls f with the next rows.
func (z *frozen) Page(ctx context.Context, after int64, limit int, f func(*changelog.Row) error) error {
	return z.l.damage(scan.EachRow(ctx, f)(z.conn.QueryContext(ctx, "SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id"+`
		FROM log FORCE INDEX (PRIMARY)
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)))
}

// OldPage calls f with the next rows of table past.
func (z *frozen) OldPage(ctx context.Context, after int64, limit int, f func(*changelog.OldRow) error) error {
	return z.l.damage(scan.EachOld(ctx, f)(z.conn.QueryContext(ctx, "SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id, until_id, until_at, expires"+`
		FROM past FORCE INDEX (PRIMARY)
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)))
}

// Links calls f with the next rows in order of keys.
func (z *frozen) Links(ctx context.Context, after changelog.Link, indexed bool, limit int, f func(*changelog.Row) error) error {
	query := "SELECT id, `key`, create_id, deleted, `at`, author" + `
		FROM log IGNORE INDEX (log_key_id)
		WHERE ` + "`key` > ? OR `key` = ? AND id > ?" + `
		ORDER BY ` + "`key`, id" + `
		LIMIT ?`
	if indexed {
		query = "SELECT id, `key`, create_id, deleted, `at`, author" + `
			FROM log FORCE INDEX (log_key_id)
			WHERE ` + "`key` >= ? AND (`key` > ? OR id > ?)" + `
			ORDER BY ` + "`key`, id" + `
			LIMIT ?`
	}
	return z.l.damage(scan.EachLink(ctx, f)(z.conn.QueryContext(ctx, query, after.Key, after.Key, after.Revision, limit)))
}

// NextLink reads the index of keys alone.
func (z *frozen) NextLink(ctx context.Context, after changelog.Link) (next changelog.Link, ok bool, err error) {
	err = z.conn.QueryRowContext(ctx, "SELECT id, `key`"+`
		FROM log FORCE INDEX (log_key_id)
		WHERE `+"`key` >= ? AND (`key` > ? OR id > ?)"+`
		ORDER BY `+"`key`, id"+`
		LIMIT 1`, after.Key, after.Key, after.Revision).Scan(&next.Revision, &next.Key)
	if errors.Is(err, sql.ErrNoRows) {
		return next, false, nil
	}
	return next, err == nil, z.l.damage(err)
}
