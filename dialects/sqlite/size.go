package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Size counts the rows, along the smallest of the indexes: a million take some 50 ms. The bytes of past
// are estimated by its newest thousand rows.
func (l source) Size(ctx context.Context) (s changelog.Size, err error) {
	var pages, page int64
	err = l.reads.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM log),
		       (SELECT page_count FROM pragma_page_count),
		       (SELECT page_size FROM pragma_page_size)`).Scan(&s.Rows, &pages, &page)
	if err != nil {
		return s, fmt.Errorf("read size: %w", classify(err))
	}
	s.Bytes, s.Free, s.PastData = pages*page, -1, -1
	if err := l.pastSize(ctx, &s); err != nil {
		return s, fmt.Errorf("read size: %w", classify(err))
	}
	if l.path == "" {
		return s, nil
	}
	if wal, err := os.Stat(l.path + "-wal"); err == nil {
		s.Bytes += wal.Size()
	}
	if free, _, err := space(filepath.Dir(l.path)); err == nil {
		s.Free = free
	}
	return s, nil
}

// Room returns the space of the file system.
func (l *database) Room() (free, size int64) {
	if l.path == "" {
		return -1, -1
	}
	free, size, err := space(filepath.Dir(l.path))
	if err != nil {
		return -1, -1
	}
	return free, size
}

// pastSize leaves out a table past that is not there: Inspect reads databases of older versions.
func (l source) pastSize(ctx context.Context, s *changelog.Size) error {
	var there bool
	err := l.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'past')`).Scan(&there)
	if err != nil || !there {
		return err
	}
	if s.PastData, err = l.pastData(ctx); err != nil {
		return err
	}
	return l.reads.QueryRowContext(ctx, `
		SELECT n.rows, CAST(n.rows * coalesce((
			SELECT avg(length(value) + 3 * length(key) + 100)
			FROM (SELECT key, value FROM past ORDER BY id DESC LIMIT 1000)), 0) AS INTEGER)
		FROM (SELECT count(*) AS rows FROM past) AS n`).Scan(&s.Past, &s.PastBytes)
}
