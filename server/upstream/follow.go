package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
)

// Follow says how an Import goes on with the changes of a source until somebody ends it. The source
// may be away meanwhile.
type Follow struct {
	From LiveSource // Import.From
	// Quiet ends it when nobody has written anything for that long. 0: only the end of the context
	// does. Either end is a good one: all changes up to it are taken.
	Quiet time.Duration
	// Tell gets where the import is, every now and then, and what keeps it from going on.
	Tell func(Step)
}

// Step is where an Import that follows a source is.
type Step struct {
	Revision int64 // of the source, up to which all is taken
	Behind   int64 // revisions that are not
	Changes  int64 // taken since the objects were
	Ending   bool  // the end was asked for
	Err      error // the source, or the target, did not answer; it is asked again
}

const (
	// followGap is how many revisions a source may go on by while it is followed.
	followGap = 1_000_000_000
	tellEvery = 10 * time.Second
	retryWait = time.Second
	// endPatience is how long the rest may not come before all keys are compared, which needs no
	// changes.
	endPatience = 20 * time.Second
)

// following is an Import at work on changes.
type following struct {
	*Import
	w       *sqlstore.Intake
	above   int64 // the source's revisions stay below
	through int64
	changes int64

	asked     <-chan struct{} // closed when the end is asked for
	end       int64           // revision to end at; 0: the end was not asked for
	endAsked  time.Time
	lastWrite time.Time // when somebody wrote something
	told      time.Time
}

// follow takes all objects and then changes, and returns the revision up to which it has. An end of
// ctx before all objects are taken is an error.
func (im *Import) follow(ctx context.Context, w *sqlstore.Intake, above int64) (through int64, err error) {
	f := &following{Import: im, w: w, above: above, asked: ctx.Done()}
	for {
		if err = f.takeAll(ctx, w); !errors.Is(err, ErrCompacted) {
			break
		}
		if err = im.Follow.From.Refresh(ctx); err != nil { // and what is taken already is passed over
			break
		}
	}
	if err != nil {
		return 0, err
	}
	f.through, f.lastWrite = im.From.Revision(), time.Now()
	work := context.WithoutCancel(ctx) // a second signal ends the process
	for !f.ended() {
		err := f.step(work)
		if f.lasting(err) {
			return f.through, err
		}
		f.tell(work, err)
		if err != nil {
			time.Sleep(retryWait)
			f.lastWrite = time.Now() // nobody knows
		}
	}
	return f.through, nil
}

func (f *following) ended() bool { return f.end > 0 && f.through >= f.end && !f.missed }

// lasting tells whether an error stays when the same is tried again.
func (f *following) lasting(err error) bool {
	var sealed *SealedError
	return errors.As(err, &sealed) || errors.Is(err, errTooFar) || errors.Is(err, sqlstore.ErrOvertaken)
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
		f.end, f.endAsked, f.told = end, time.Now(), time.Time{}
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

// tell tells of errors, of the first time, and every now and then.
func (f *following) tell(ctx context.Context, err error) {
	if f.Follow.Tell == nil || time.Since(f.told) < tellEvery && !f.ended() {
		return
	}
	s := Step{Revision: f.through, Changes: f.changes, Ending: f.end > 0, Err: err}
	if err == nil {
		newest, err := f.Follow.From.Newest(ctx)
		if err != nil {
			err = fmt.Errorf("read the newest revision: %w", err)
		}
		s.Behind, s.Err = max(0, newest-f.through), err
	}
	f.told = time.Now()
	f.Follow.Tell(s)
}
