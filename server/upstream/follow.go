package upstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// Follow says how an Import goes on with the changes of a source until somebody ends it. The source
// may be away meanwhile.
type Follow struct {
	From LiveSource // Import.From
	// Quiet ends it when nobody has written anything for that long. 0: only the end of the context
	// does. Either end is a good one: all changes up to it are taken.
	Quiet time.Duration
	// GiveUp, which may be nil, is closed when the rest is not to be waited for any more. What was taken is a
	// half then.
	GiveUp <-chan struct{}
}

// untilGivenUp returns a context that ends when the rest is given up, and with end, but not with ctx.
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
	// followGap is how many revisions a source may go on by while it is followed.
	followGap = 1_000_000_000
	// endPatience is how long the rest may not come before all keys are compared, which needs no
	// changes.
	endPatience = 20 * time.Second
)

// following is an Import at work on changes. Its work is done by one goroutine at a time, while the one that
// has called Run looks on and tells.
type following struct {
	*Import
	*onlooker
	w     *transfer.Intake
	above int64 // the source's revisions stay below

	// Of the work, and of the looker-on between two pieces of it.
	through   int64
	newest    int64 // of the source, when it was asked last
	changes   int64
	end       int64 // revision to end at; 0: it was not looked for
	endAsked  time.Time
	lastWrite time.Time // when somebody wrote something
	news      bool      // newest is to be asked for
}

// follow takes all objects and then changes, and returns the revision up to which it has. An end of
// ctx before all objects are taken is an error.
func (im *Import) follow(ctx context.Context, w *transfer.Intake, above int64) (through int64, err error) {
	f := &following{Import: im, onlooker: im.lookOn(ctx), w: w, above: above}
	if err := f.takeAllOnce(ctx); err != nil {
		return 0, err
	}
	f.through, f.lastWrite = im.From.Revision(), time.Now()
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	for !f.ended() {
		f.news = f.due()
		err := f.see(work, giveUp, f.stepAndAsk)
		if f.lasting(err) || work.Err() != nil {
			return f.through, err
		}
		f.tell(err, f.where())
		if err != nil {
			f.rest()
			f.lastWrite = time.Now() // nobody knows
		}
	}
	return f.through, nil
}

// where is how far the import is. It is asked between two pieces of work.
func (f *following) where() Step {
	return Step{Revision: f.through, Behind: max(0, f.newest-f.through), Changes: f.changes, Ending: f.end > 0, last: f.ended()}
}

// surveyFollowed surveys a source that goes on.
func (im *Import) surveyFollowed(ctx context.Context) error {
	f := &following{Import: im, onlooker: im.lookOn(ctx)}
	err := f.insist(ctx, im.survey)
	if err == nil && f.fails() {
		f.tell(nil, Step{})
	}
	return err
}

// takeAllOnce takes all objects.
func (f *following) takeAllOnce(ctx context.Context) error {
	return f.insist(ctx, func(ctx context.Context) error { return f.takeAll(ctx, f.w) })
}

// insist has all keys be read. A source that goes away meanwhile is waited for.
func (f *following) insist(ctx context.Context, read func(context.Context) error) error {
	for {
		err := f.see(ctx, nil, read)
		if errors.Is(err, ErrCompacted) {
			err = f.see(ctx, nil, f.Follow.From.Refresh) // and what is taken already is passed over
			if err == nil {
				continue
			}
		}
		if err == nil || ctx.Err() != nil || f.lasting(err) {
			return err
		}
		f.tell(err, Step{})
		f.rest()
	}
}

// stepAndAsk takes the next changes, and asks how far the source is if that is to be told.
func (f *following) stepAndAsk(ctx context.Context) error {
	err := f.step(ctx)
	if err == nil && (f.news || f.ended()) {
		f.newest, err = f.Follow.From.Newest(ctx)
	}
	return err
}

func (f *following) ended() bool { return f.end > 0 && f.through >= f.end && !f.missed }

// lasting tells whether an error stays when the same is tried again.
func (f *following) lasting(err error) bool {
	var sealed *SealedError
	return errors.As(err, &sealed) || errors.Is(err, errTooFar) || errors.Is(err, ErrNoKeys) || errors.Is(err, transfer.ErrOvertaken)
}

var errTooFar = errors.New("the source has gone on too far; begin again")

// step takes the next changes.
func (f *following) step(ctx context.Context) error {
	if f.through > f.above {
		return errTooFar
	}
	if err := f.seeEnd(ctx); err != nil {
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

// noteWrites notes that somebody has written. Events that expire do not count.
func (f *following) noteWrites(events []Event) {
	for _, e := range events {
		if !e.Deleted || !strings.HasPrefix(e.Key, f.Layout.Prefix()+"events/") {
			f.lastWrite = time.Now()
		}
	}
}

// seeEnd finds out where to end when that was asked for.
func (f *following) seeEnd(ctx context.Context) error {
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

// compareAll reads all keys anew, takes those that have changed, and deletes what is not there.
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
		f.missed = true // so that it is tried again
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
