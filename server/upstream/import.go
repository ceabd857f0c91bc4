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
	// Encryption decrypts what the kube-apiserver has encrypted, and encrypts it again for the log.
	Encryption *encryption.Providers
	// Follow, which may be nil, makes the import go on with changes.
	Follow *Follow
	// Tell, which may be nil, gets where an import that follows is, every now and then, and what keeps any from
	// going on. The goroutine that calls Survey or Run calls it.
	Tell func(Step)
	// Progress, which may be nil, gets the number of objects written so far, and of the keys there are.
	Progress func(objects, of int64)

	beats  func(waitsFor string) // when something has come, and what is waited for then; nil: nobody asks
	keys   int64                 // below the prefix
	tally  *tally
	missed bool // custom resources were passed over before their definition was there
}

// ErrNoKeys says that a Source has no keys below the prefix.
var ErrNoKeys = errors.New("there are no keys")

// SealedError says that values cannot be decrypted.
type SealedError struct {
	Keys  int64
	First string // a key
	Err   error  // why that one is not
}

func (e *SealedError) Error() string {
	return fmt.Sprintf("%d objects are encrypted and cannot be read, among them %s: %v", e.Keys, e.First, e.Err)
}

func (e *SealedError) Unwrap() error { return e.Err }

// Survey reads all keys once: it learns the custom resources, and finds out whether everything can be
// decrypted, before anything is written. It must be called before Run. A source that is followed and goes away
// meanwhile is waited for.
func (im *Import) Survey(ctx context.Context) error {
	if im.Follow != nil {
		return im.surveyFollowed(ctx)
	}
	return im.lookOn(ctx).see(ctx, nil, im.survey)
}

func (im *Import) survey(ctx context.Context) error {
	im.keys = 0
	sealed := &SealedError{}
	err := im.From.Each(ctx, im.Layout.Prefix(), func(page []Pair) error {
		im.beat(theSource)
		for _, p := range page {
			im.keys++
			if err := im.look(ctx, p); err != nil {
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

// look returns an error for a value that cannot be decrypted. It learns a custom resource from its
// definition.
func (im *Import) look(ctx context.Context, p Pair) error {
	at, err := im.Layout.find(p.Key)
	var left *LeftOut
	if errors.As(err, &left) {
		return nil
	}
	if err != nil { // perhaps of a custom resource whose definition comes later
		at = im.Layout.guess(p.Key)
	}
	plain, err := im.Encryption.FromUpstream(ctx, at.resource.name, p.Key, p.Value)
	if err != nil || at.resource.name != definitions {
		return err
	}
	if stored, _, err := at.decode(plain); err == nil {
		_ = im.Layout.Define(stored) // Run says what is wrong with a definition
	}
	return nil
}

// learn learns the custom resources that are defined in a page and were not there when Survey was.
func (im *Import) learn(ctx context.Context, page []Pair) {
	for _, p := range page {
		at, err := im.Layout.find(p.Key)
		if err != nil || at.resource.name != definitions {
			continue
		}
		before := len(im.Layout.byName)
		_ = im.look(ctx, p) // convert fails, too
		plural, group, _ := strings.Cut(at.name, ".")
		if len(im.Layout.byName) > before && im.tally.forget(im.Layout.Prefix()+group+"/"+plural+"/") {
			im.missed = true
		}
	}
}

// Run writes the objects to a log that is empty, or has what an Import has left that did not finish: of that
// nothing stays. Objects that cannot be taken are in the report. An error after the log was marked wraps
// sqlstore.ErrHalfCopied.
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
		ctx, end = im.Follow.untilGivenUp(ctx) // the end was asked for
		defer end()
	} else {
		err = im.lookOn(ctx).see(ctx, nil, func(ctx context.Context) error { return im.takeAll(ctx, w) })
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

// Try is Run without a log: it only makes the report, of which there is none after an error.
func (im *Import) Try(ctx context.Context) (Report, error) {
	im.tally = newTally()
	err := im.lookOn(ctx).see(ctx, nil, func(ctx context.Context) error { return im.takeAll(ctx, nil) })
	if err != nil {
		return Report{}, err // the source may still be read
	}
	return im.tally.report(im.From.Revision()), nil
}

// takeAll writes all objects of the source that the tally does not know, while others are read and
// converted.
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
				im.beat(theSource)
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
			continue // until the reader has ended
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

// unknown leaves out the pairs that were taken before.
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

// What an Import waits for.
const (
	theSource = "the source"
	theTarget = "the target database"
)

func (im *Import) beat(waitsFor string) {
	if im.beats != nil {
		im.beats(waitsFor)
	}
}

// write writes what came of some pairs, and notes it.
func (im *Import) write(ctx context.Context, w *transfer.Intake, outcomes []outcome) (written int64, err error) {
	changes := make([]changelog.Change, 0, len(outcomes))
	for _, o := range outcomes {
		if o.change.Key != "" {
			changes = append(changes, o.change)
		}
	}
	if w != nil {
		im.beat(theTarget)
		if err := w.Write(ctx, changes); err != nil {
			return 0, err
		}
		im.beat(theSource)
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
