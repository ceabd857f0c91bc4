package upstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// Follow makes an Import continue with the changes of a source until somebody ends it. The source may be
// unavailable for a while.
type Follow struct {
	From LiveSource // the same as Import.From
	// Quiet ends the import when nobody has written anything for so long. 0: it ends only with the context.
	// Both ends are normal: all changes up to them are taken.
	Quiet time.Duration
	// GiveUp, which may be nil, is closed to end the import without waiting for the remaining changes. The
	// log is then incomplete.
	GiveUp <-chan struct{}
}

// untilGivenUp returns a context that ends when the import is given up, or with end, but not with ctx.
func (f *Follow) untilGivenUp(ctx context.Context) (_ context.Context, end context.CancelFunc) {
	ctx, end = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-f.GiveUp:
			end()
		case <-ctx.Done():
		}
	}()
	return ctx, end
}

const (
	// followGap is the most revisions that a source may gain while it is followed.
	followGap = 1_000_000_000
	// endPatience is how long to wait for the remaining changes before all keys are compared, for which no
	// changes are needed.
	endPatience = 20 * time.Second
)

// following is an Import that processes changes. One goroutine at a time does its work, supervised by the
// goroutine that called Run.
type following struct {
	*Import
	*supervisor
	w     *transfer.Intake
	above int64 // the upper bound of the source's revisions

	// These belong to the working goroutine, and to the supervisor between two pieces of work.
	through   int64
	newest    int64 // the source's newest revision, by the last request
	changes   int64
	end       int64 // revision to end at; 0: not known yet
	endAsked  time.Time
	lastWrite time.Time // when somebody last wrote something
	news      bool      // the next step requests newest
}

// follow takes all objects and then changes, and returns the revision up to which it has taken them. If ctx
// ends before all objects are taken, that is an error.
func (im *Import) follow(ctx context.Context, w *transfer.Intake, above int64) (through int64, err error) {
	f := &following{Import: im, supervisor: im.supervise(ctx), w: w, above: above}
	if err := f.takeAllOnce(ctx); err != nil {
		return 0, err
	}
	f.through, f.lastWrite = im.From.Revision(), time.Now()
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	for !f.ended() {
		f.news = f.due()
		err := f.run(work, giveUp, f.stepAndAsk)
		if f.isPermanent(err) || work.Err() != nil {
			return f.through, err
		}
		f.report(err, f.position())
		if err != nil {
			f.backOff()
			f.lastWrite = time.Now() // not known after an error
		}
	}
	return f.through, nil
}

// position returns how far the import is. It is called between two pieces of work.
func (f *following) position() Step {
	return Step{Revision: f.through, Behind: max(0, f.newest-f.through), Changes: f.changes, Ending: f.end > 0, last: f.ended()}
}

// surveyFollowed surveys a source that may become unavailable.
func (im *Import) surveyFollowed(ctx context.Context) error {
	f := &following{Import: im, supervisor: im.supervise(ctx)}
	err := f.retry(ctx, im.survey)
	if err == nil && f.fails() {
		f.report(nil, Step{})
	}
	return err
}

// takeAllOnce takes all objects.
func (f *following) takeAllOnce(ctx context.Context) error {
	return f.retry(ctx, func(ctx context.Context) error { return f.takeAll(ctx, f.w) })
}

// retry calls read until it succeeds or fails permanently. It waits for a source that is unavailable.
func (f *following) retry(ctx context.Context, read func(context.Context) error) error {
	for {
		err := f.run(ctx, nil, read)
		if errors.Is(err, ErrCompacted) {
			err = f.run(ctx, nil, f.Follow.From.Refresh) // read skips what was taken before
			if err == nil {
				continue
			}
		}
		if err == nil || ctx.Err() != nil || f.isPermanent(err) {
			return err
		}
		f.report(err, Step{})
		f.backOff()
	}
}

// stepAndAsk takes the next changes, and requests the source's newest revision if a report is due.
func (f *following) stepAndAsk(ctx context.Context) error {
	err := f.step(ctx)
	if err == nil && (f.news || f.ended()) {
		f.newest, err = f.Follow.From.Newest(ctx)
	}
	return err
}

func (f *following) ended() bool { return f.end > 0 && f.through >= f.end && !f.missed }

// isPermanent reports whether another try would return the same error.
func (f *following) isPermanent(err error) bool {
	var sealed *SealedError
	return errors.As(err, &sealed) || errors.Is(err, errTooFar) || errors.Is(err, ErrNoKeys) || errors.Is(err, transfer.ErrOvertaken)
}

var errTooFar = errors.New("the source has gone on too far; begin again")

// step takes the next changes.
func (f *following) step(ctx context.Context) error {
	if f.through > f.above {
		return errTooFar
	}
	if err := f.findEnd(ctx); err != nil {
		return err
	}
	if f.missed {
		return f.compareAll(ctx)
	}
	got, err := f.Follow.From.Changes(ctx, f.Layout.Prefix(), f.through)
	late := f.end > 0 && time.Since(f.endAsked) > endPatience && len(got.Events) == 0
	if errors.Is(err, ErrCompacted) || err == nil && late {
		return f.compareAll(ctx)
	}
	if err != nil {
		return err
	}
	outcomes, err := f.convertEvents(ctx, got.Events)
	if err == nil {
		_, err = f.write(ctx, f.w, outcomes)
	}
	if err != nil {
		return err
	}
	f.through, f.changes = max(f.through, got.Through), f.changes+int64(len(got.Events))
	f.noteWrites(got.Events)
	return nil
}

// noteWrites records that somebody has written. Expiring Events do not count.
func (f *following) noteWrites(events []Event) {
	for _, e := range events {
		if !e.Deleted || !strings.HasPrefix(e.Key, f.Layout.Prefix()+"events/") {
			f.lastWrite = time.Now()
		}
	}
}

// findEnd determines the revision to end at, if the end was requested.
func (f *following) findEnd(ctx context.Context) error {
	asked := f.Follow.Quiet > 0 && time.Since(f.lastWrite) >= f.Follow.Quiet
	select {
	case <-f.asked:
		asked = true
	default:
	}
	if f.end > 0 || !asked {
		return nil
	}
	end, err := f.Follow.From.Newest(ctx)
	if err == nil {
		f.end, f.endAsked = end, time.Now()
	}
	return err
}

// compareAll reads all keys again, takes those that have changed, and deletes those that are gone.
func (f *following) compareAll(ctx context.Context) error {
	from := f.Follow.From
	f.missed = false
	if err := from.Refresh(ctx); err != nil {
		return err
	}
	there := map[string]bool{}
	err := from.Each(ctx, f.Layout.Prefix(), func(page []Pair) error {
		events := make([]Event, len(page))
		for i, p := range page {
			there[p.Key] = true
			events[i] = Event{Pair: p}
		}
		outcomes, err := f.convertEvents(ctx, events)
		if err == nil {
			_, err = f.write(ctx, f.w, outcomes)
		}
		return err
	})
	if err != nil {
		f.missed = true // the next step tries again
		return err
	}
	var gone []outcome
	for key := range f.tally.fates {
		if !there[key] {
			gone = append(gone, f.deletion(Event{Pair: Pair{Key: key}}))
		}
	}
	if _, err := f.write(ctx, f.w, gone); err != nil {
		return err
	}
	f.through = max(f.through, from.Revision())
	f.lastWrite = time.Now()
	return nil
}
