package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Step is the progress of an Import. If the import does not follow its source, only Err, Away and Back are
// set.
type Step struct {
	Revision int64 // the source's revision up to which everything is taken; 0: not all objects are taken
	Behind   int64 // the number of revisions that remain
	Changes  int64 // changes taken after all objects
	Ending   bool  // the end was requested
	last     bool

	Err  error         // the error of the source or the target, or that it does not answer; an import that follows tries again
	Away time.Duration // with Err: for how long it has failed
	Back bool          // it works again, after Away
}

const (
	// reportEvery is the shortest pause between two Steps if nothing is new.
	reportEvery = 10 * time.Second
	// silence is how long source and target may do without an answer before that is reported; askedSilence is
	// the same after the end was requested.
	silence      = 4 * time.Second
	askedSilence = time.Second
	// leastPause and mostPause are the pauses before a failed step is tried again.
	leastPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
	// giveUpGrace is how long work may take to end after its context has ended.
	giveUpGrace = time.Second
)

// supervisor runs the work of an Import in other goroutines, and reports what they wait for. It belongs to
// the goroutine that called the Import, except for the fields that the work sets.
type supervisor struct {
	tell   func(Step)
	asked  <-chan struct{} // closed when the end is requested
	giveUp <-chan struct{} // Follow.GiveUp

	reportedAt  time.Time // when the last Step was reported
	failing     time.Time // since when it fails; zero: it does not
	err         error     // the last error since then; nil: there was only no answer
	pause       time.Duration
	endReported bool // it has been reported that the end was requested

	// The work sets these, in Unix nanoseconds: when it last progressed, and when it last waited for the
	// source, with everything written that had come. If the target fails, progress of the source does not end
	// that failure.
	cameAt, doneAt atomic.Int64
	waitsFor       atomic.Value // what the work waits for since cameAt
}

// supervise returns a supervisor of the import's work from now on. The end of ctx requests the end.
func (im *Import) supervise(ctx context.Context) *supervisor {
	o := &supervisor{tell: im.Tell, asked: ctx.Done()}
	if o.tell == nil {
		o.tell = func(Step) {}
	}
	if im.Follow != nil {
		o.giveUp = im.Follow.GiveUp
	}
	im.onAdvance = o.advance
	return o
}

// advance records that there is progress, and what the work waits for next.
func (o *supervisor) advance(waitsFor string) {
	now := time.Now().UnixNano()
	o.waitsFor.Store(waitsFor)
	o.cameAt.Store(now)
	if waitsFor == theSource {
		o.doneAt.Store(now)
	}
}

// run runs a piece of work in another goroutine, and reports what it waits for, and that the end was
// requested. When the import is given up, it calls giveUp; then, and when ctx ends, it does not wait for work
// that does not end by itself.
func (o *supervisor) run(ctx context.Context, giveUp context.CancelFunc, work func(context.Context) error) error {
	if !o.fails() { // otherwise the failure continues, however often the work is tried again
		o.advance(theSource)
	}
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(silence / 8)
	defer tick.Stop()
	asked, end := o.asked, ctx.Done()
	if giveUp == nil || o.endReported {
		asked = nil // then ctx ends, or it was reported
	}
	var over <-chan time.Time
	for {
		select {
		case err := <-done:
			return err
		case <-asked:
			asked = nil
			o.reportEnding()
		case <-o.giveUp:
			if giveUp == nil {
				return o.awaitEnd(done)
			}
			giveUp()
			return o.awaitEnd(done)
		case <-end:
			end, over = nil, time.After(giveUpGrace)
		case <-over:
			return ctx.Err()
		case <-tick.C:
			o.reportSilence()
		}
	}
}

// awaitEnd waits a moment for work that should end.
func (o *supervisor) awaitEnd(done <-chan error) error {
	select {
	case err := <-done:
		return errors.Join(context.Canceled, err)
	case <-time.After(giveUpGrace):
		return context.Canceled
	}
}

// backOff waits before a failed step is tried again: longer each time, and no longer if the end is requested.
func (o *supervisor) backOff() {
	o.pause = min(max(leastPause, 2*o.pause), mostPause)
	timer, tick := time.NewTimer(o.pause), time.NewTicker(silence/8)
	defer timer.Stop()
	defer tick.Stop()
	asked := o.asked
	if o.endReported {
		asked = nil
	}
	for {
		select {
		case <-timer.C:
			return
		case <-asked:
			o.reportEnding()
			return
		case <-o.giveUp:
			return
		case <-tick.C:
			o.reportSilence()
		}
	}
}

func (o *supervisor) fails() bool { return !o.failing.IsZero() }

// due reports whether it is time for a report even if nothing is new.
func (o *supervisor) due() bool {
	return o.reportedAt.IsZero() || time.Since(o.reportedAt) >= reportEvery
}

// report reports an error, the end of a failure or, at intervals, the progress after a piece of work.
func (o *supervisor) report(err error, at Step) {
	switch {
	case err != nil:
		o.err = err
		o.reportFailure(err, at)
	case o.fails():
		o.reportRecovery(at)
	case o.due() || at.last:
		o.emit(at)
	}
}

// reportFailure reports a failure, at once and then at intervals.
func (o *supervisor) reportFailure(err error, at Step) {
	begins := !o.fails()
	if begins {
		o.failing = time.Unix(0, o.cameAt.Load())
	}
	if begins || o.due() {
		at.Err, at.Away = err, time.Since(o.failing)
		o.emit(at)
	}
}

// reportRecovery reports that a failure has ended.
func (o *supervisor) reportRecovery(at Step) {
	at.Back, at.Away = true, time.Since(o.failing)
	o.failing, o.err, o.pause = time.Time{}, nil, 0
	o.emit(at)
}

// reportSilence reports that there has been no progress for a while, or that there is progress again.
func (o *supervisor) reportSilence() {
	if o.fails() && o.doneAt.Load() > o.failing.UnixNano() {
		o.reportRecovery(Step{})
	} else if o.fails() || o.silentFor() >= silence {
		o.reportFailure(o.noAnswer(), Step{})
	}
}

// reportEnding reports at once that the end was requested, and what the import still waits for.
func (o *supervisor) reportEnding() {
	o.endReported = true
	if !o.fails() && o.silentFor() < askedSilence {
		o.emit(Step{})
		return
	}
	o.reportedAt = time.Time{}
	o.reportFailure(o.noAnswer(), Step{})
}

// silentFor returns how long there has been no progress.
func (o *supervisor) silentFor() time.Duration { return time.Since(time.Unix(0, o.cameAt.Load())) }

// noAnswer returns the known reason why there is no progress.
func (o *supervisor) noAnswer() error {
	if o.err != nil {
		return o.err
	}
	return fmt.Errorf("no answer from %s for %v", o.waitsFor.Load(), o.silentFor().Round(time.Second))
}

func (o *supervisor) emit(s Step) {
	o.reportedAt = time.Now()
	s.Ending = s.Ending || o.endReported
	o.tell(s)
}
