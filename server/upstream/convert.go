package upstream

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// outcome is the result of converting one key of the source.
type outcome struct {
	key     string
	deleted bool
	fate
	change changelog.Change // without a key: nothing is written
}

// convertPage converts pairs on all processors. It fails if a value cannot be decrypted.
func (im *Import) convertPage(ctx context.Context, page []Pair) ([]outcome, error) {
	outcomes := make([]outcome, len(page))
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() (err error) {
			for i := w; i < len(page) && ctx.Err() == nil; i += workers {
				if outcomes[i], err = im.convert(ctx, page[i]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return outcomes, group.Wait()
}

func (im *Import) convert(ctx context.Context, p Pair) (outcome, error) {
	o := outcome{key: p.Key, fate: fate{revision: p.Revision}}
	at, err := im.Layout.find(p.Key)
	if err != nil {
		return o.skip(err), nil
	}
	key := at.logKey()
	if len(key) > changelog.MaxKeyBytes {
		return o.skip(fmt.Errorf("its key has more than %d bytes", changelog.MaxKeyBytes)), nil
	}
	plain, err := im.Encryption.FromUpstream(ctx, at.resource.name, p.Key, p.Value)
	if err != nil {
		return o, &SealedError{Keys: 1, First: p.Key, Err: err}
	}
	stored, from, err := at.decode(plain)
	if err != nil {
		return o.skip(err), nil
	}
	if err := object.Check(key, stored); err != nil { // plinth could not read it: its name has control characters, or differs from the key's
		return o.skip(err), nil
	}
	if b := at.builtin; b != nil && from != b.stored.GroupVersion() {
		o.from = from.String()
	}
	if stored, err = im.Encryption.ToStorage(ctx, key, stored); err != nil {
		return o, fmt.Errorf("encrypt %s: %w", p.Key, err)
	}
	o.resource, o.change = at.resource, changelog.Change{Key: key, Value: stored}
	return o, nil
}

func (o outcome) skip(why error) outcome {
	var left *LeftOut
	o.why, o.lost = why.Error(), !errors.As(why, &left)
	return o
}

// convertEvents is convertPage for changes. Only the last change of each key counts.
func (im *Import) convertEvents(ctx context.Context, events []Event) ([]outcome, error) {
	last := map[string]int{}
	for i, e := range events {
		last[e.Key] = i
	}
	var deleted []outcome
	var page []Pair
	for i, e := range events {
		switch {
		case last[e.Key] != i || im.tally.knows(e.Key, e.Revision):
		case e.Deleted:
			deleted = append(deleted, im.deletion(e))
		default:
			page = append(page, e.Pair)
		}
	}
	im.learn(ctx, page)
	outcomes, err := im.convertPage(ctx, page)
	return append(deleted, outcomes...), err
}

func (im *Import) deletion(e Event) outcome {
	o := outcome{key: e.Key, deleted: true}
	if at, err := im.Layout.find(e.Key); err == nil {
		o.change = changelog.Change{Key: at.logKey(), Delete: true}
	}
	return o
}
