package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// Import takes the objects of a Source into a log.
type Import struct {
	From   Source
	Layout *Layout
	// Encryption decrypts the values of the kube-apiserver, and encrypts them again for the log.
	Encryption *encryption.Providers
	// Follow, which may be nil, makes the import continue with changes.
	Follow *Follow
	// Tell, which may be nil, is called at intervals with the progress of an import that follows, and with
	// what keeps any import from continuing. It is called in the goroutine that called Survey or Run.
	Tell func(Step)
	// Progress, which may be nil, is called with the number of objects written so far, and of the source's
	// keys.
	Progress func(objects, of int64)

	onAdvance func(waitsFor string) // is called when there is progress, with what the import waits for next; nil: nobody supervises
	keys      int64                 // number of keys below the prefix
	tally     *tally
	missed    bool // custom resources were skipped because their definition was missing
}

// ErrNoKeys means that a Source has no keys below the prefix.
var ErrNoKeys = errors.New("there are no keys")

// SealedError means that values cannot be decrypted.
type SealedError struct {
	Keys  int64
	First string // the key of one of them
	Err   error  // why that one cannot be decrypted
}

func (e *SealedError) Error() string {
	return fmt.Sprintf("%d objects are encrypted and cannot be read, among them %s: %v", e.Keys, e.First, e.Err)
}

func (e *SealedError) Unwrap() error { return e.Err }

// Survey reads all keys once, before anything is written: it learns the custom resources, and finds out
// whether everything can be decrypted. Call it before Run. If a followed source becomes unavailable, Survey
// waits for it.
func (im *Import) Survey(ctx context.Context) error {
	if im.Follow != nil {
		return im.surveyFollowed(ctx)
	}
	return im.supervise(ctx).run(ctx, nil, im.survey)
}

func (im *Import) survey(ctx context.Context) error {
	im.keys = 0
	sealed := &SealedError{}
	err := im.From.Each(ctx, im.Layout.Prefix(), func(page []Pair) error {
		im.advanced(theSource)
		for _, p := range page {
			im.keys++
			if err := im.checkPair(ctx, p); err != nil {
				if sealed.Keys++; sealed.Keys == 1 {
					sealed.First, sealed.Err = p.Key, err
				}
			}
		}
		return ctx.Err()
	})
	switch {
	case err != nil:
		return err
	case im.keys == 0:
		return ErrNoKeys
	case sealed.Keys > 0:
		return sealed
	}
	return nil
}

// checkPair returns an error if a value cannot be decrypted. It learns a custom resource from its definition.
func (im *Import) checkPair(ctx context.Context, p Pair) error {
	at, err := im.Layout.find(p.Key)
	var left *LeftOut
	if errors.As(err, &left) {
		return nil
	}
	if err != nil { // it may be of a custom resource whose definition comes later
		at = im.Layout.guess(p.Key)
	}
	plain, err := im.Encryption.FromUpstream(ctx, at.resource.name, p.Key, p.Value)
	if err != nil || at.resource.name != definitions {
		return err
	}
	if stored, _, err := at.decode(plain); err == nil {
		_ = im.Layout.Define(stored) // Run reports what is wrong with a definition
	}
	return nil
}

// learn learns the custom resources that are defined in a page and did not exist at Survey.
func (im *Import) learn(ctx context.Context, page []Pair) {
	for _, p := range page {
		at, err := im.Layout.find(p.Key)
		if err != nil || at.resource.name != definitions {
			continue
		}
		before := len(im.Layout.byName)
		_ = im.checkPair(ctx, p) // convert fails with the same error
		plural, group, _ := strings.Cut(at.name, ".")
		if len(im.Layout.byName) > before && im.tally.forget(im.Layout.Prefix()+group+"/"+plural+"/") {
			im.missed = true
		}
	}
}

// Run writes the objects to an empty log, or to one in which an unfinished Import has left objects, which it
// removes first. The report lists objects that cannot be taken. An error after the log was marked as
// incomplete wraps sqlstore.ErrHalfCopied.
func (im *Import) Run(ctx context.Context, to changelog.Log) (Report, error) {
	o := transfer.IntakeOptions{Source: "etcd", Above: im.From.Revision()}
	if im.Follow != nil {
		o.Above += followGap
	}
	w, err := transfer.BeginIntake(ctx, to, o)
	if err != nil {
		return Report{}, fmt.Errorf("import: %w", err)
	}
	im.tally = newTally()
	through := im.From.Revision()
	if im.Follow != nil {
		through, err = im.follow(ctx, w, o.Above)
		var end context.CancelFunc
		ctx, end = im.Follow.untilGivenUp(ctx) // the end was requested
		defer end()
	} else {
		err = im.supervise(ctx).run(ctx, nil, func(ctx context.Context) error { return im.takeAll(ctx, w) })
	}
	if err == nil {
		err = w.Finish(ctx)
	}
	report := im.tally.report(through)
	if errors.Is(err, transfer.ErrOvertaken) {
		return report, fmt.Errorf("import: %w", err)
	}
	if err != nil {
		err = fmt.Errorf("%w, of %d objects: %w", changelog.ErrHalfCopied, report.Objects, err)
	}
	return report, err
}

// Try is Run without a log: it only makes the report. After an error there is no report.
func (im *Import) Try(ctx context.Context) (Report, error) {
	im.tally = newTally()
	err := im.supervise(ctx).run(ctx, nil, func(ctx context.Context) error { return im.takeAll(ctx, nil) })
	if err != nil {
		return Report{}, err // the source may still be in use
	}
	return im.tally.report(im.From.Revision()), nil
}

// takeAll writes all objects of the source that the tally does not contain. Pages are read, converted and
// written at the same time.
func (im *Import) takeAll(ctx context.Context, w *transfer.Intake) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan []outcome, 2)
	var readErr error // set before pages is closed
	go func() {
		defer close(pages)
		readErr = im.From.Each(ctx, im.Layout.Prefix(), func(page []Pair) error {
			outcomes, err := im.convertPage(ctx, im.unknown(ctx, page))
			if err != nil || len(outcomes) == 0 {
				im.advanced(theSource)
				return err
			}
			select {
			case pages <- outcomes:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	var err error
	objects := int64(0)
	for page := range pages {
		if err != nil {
			continue // wait for the end of the reader
		}
		n := int64(0)
		if n, err = im.write(ctx, w, page); err != nil {
			cancel()
		}
		if objects += n; im.Progress != nil {
			im.Progress(objects, im.keys)
		}
	}
	if err == nil {
		err = readErr
	}
	return err
}

// unknown returns the pairs that were not taken before.
func (im *Import) unknown(ctx context.Context, page []Pair) []Pair {
	if im.Follow == nil {
		return page
	}
	out := page[:0:0]
	for _, p := range page {
		if !im.tally.knows(p.Key, p.Revision) {
			out = append(out, p)
		}
	}
	im.learn(ctx, out)
	return out
}

// What an Import can wait for.
const (
	theSource = "the source"
	theTarget = "the target database"
)

func (im *Import) advanced(waitsFor string) {
	if im.onAdvance != nil {
		im.onAdvance(waitsFor)
	}
}

// write writes the results of some pairs, and records them.
func (im *Import) write(ctx context.Context, w *transfer.Intake, outcomes []outcome) (written int64, err error) {
	changes := make([]changelog.Change, 0, len(outcomes))
	for _, o := range outcomes {
		if o.change.Key != "" {
			changes = append(changes, o.change)
		}
	}
	if w != nil {
		im.advanced(theTarget)
		if err := w.Write(ctx, changes); err != nil {
			return 0, err
		}
		im.advanced(theSource)
	}
	for _, o := range outcomes {
		if o.deleted {
			im.tally.remove(o.key)
		} else {
			im.tally.note(o.key, o.fate)
		}
	}
	return int64(len(changes)), nil
}
