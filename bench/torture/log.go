package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// keysOf is what keys of ConfigMaps begin with in the log.
const keysOf = "/registry/core/configmaps/"

// readLog reads all changes of objects below space from the database, old versions included.
func readLog(ctx context.Context, dsn, space string) (log []Row, others []Moment, err error) {
	take := func(r *changelog.Row) error {
		key, mine := strings.CutPrefix(r.Key, keysOf+space)
		if !mine {
			others = append(others, Moment{r.Revision, r.At})
			return nil
		}
		var w wire
		if err := json.Unmarshal(r.Value, &w); err != nil {
			return fmt.Errorf("%s at revision %d: %w", r.Key, r.Revision, err)
		}
		item := Item{space + key, r.Revision, Content{w.Data["v"], w.Data["a"]}}
		log = append(log, Row{item, r.Deleted, r.At, changelog.AuditText(r.AuditID)})
		return nil
	}
	err = frozen(ctx, dsn, func(z changelog.Frozen) error {
		if err := z.Old(ctx, func(r *changelog.OldRow) error { return take(&r.Row) }); err != nil {
			return err
		}
		return z.All(ctx, false, take)
	})
	slices.SortFunc(log, func(a, b Row) int { return int(a.Revision - b.Revision) })
	return log, others, err
}

// digestOf is the digest of what the database has.
func digestOf(ctx context.Context, dsn string) (Digest, error) {
	var d sqlstore.Digest
	err := frozen(ctx, dsn, func(z changelog.Frozen) (err error) {
		d, err = object.Digest(ctx, z, nil)
		return err
	})
	return Digest{"the database", d.Revision, d.Objects, d.Text()}, err
}

// frozen looks into the database directly, on a way without faults.
func frozen(ctx context.Context, dsn string, look func(changelog.Frozen) error) error {
	source, err := dialects.Peek(ctx, dsn, dialects.Options{})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer source.Close()
	return source.Freeze(ctx, look)
}
