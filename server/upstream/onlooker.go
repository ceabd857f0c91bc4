package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Step is where an Import is. One that does not follow its source has only Err, Away and Back.
type Step struct {
	Revision int64 // of the source, up to which all is taken; 0: not all objects are
	Behind   int64 // revisions that are not
	Changes  int64 // taken since the objects were
	Ending   bool  // the end was asked for
	last     bool

	Err  error         // the source, or the target, does not answer; one that is followed is asked again
	Away time.Duration // how long it has not; with Err
	Back bool          // it answers again, after Away
}

const (
	// tellEvery is how often a Step is told at most when nothing is new.
	tellEvery = 10 * time.Second
	// silence is how long source and target may take without a word of it, and askedSilence if the end was
	// asked for meanwhile.
	silence      = 4 * time.Second
	askedSilence = time.Second
	// leastPause and mostPause are those before what has failed is tried again.
	leastPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
	// giveUpGrace is how long work may take to end when its context has.
	giveUpGrace = time.Second
)

// onlooker has other goroutines do the work of an Import, and tells of what they wait for. It belongs to the
// goroutine that has called the Import, but for what the work says.
type onlooker struct {
	say    func(Step)
	asked  <-chan struct{} // closed when the end is asked for
	giveUp <-chan struct{} // Follow.GiveUp

	told    time.Time // when something was
	failing time.Time // since when; zero: all is well
	err     error     // of the work that has failed last since then; nil: it was only silent
	pause   time.Duration
	heard   bool // it was told that the end was asked for

	// Of the work, in unix nanoseconds: when something has come, and when all was done that had. What has come
	// from the source while the target fails is no end of that.
	cameAt, doneAt atomic.Int64
	waitsFor       atomic.Value // since cameAt
}

// lookOn returns who looks on and hears of the work of the import from now on. The end of ctx asks for the end.
func (im *Import) lookOn(ctx context.Context) *onlooker {
	o := &onlooker{say: im.Tell, asked: ctx.Done()}
	if o.say == nil {
		o.say = func(Step) {}
	}
	if im.Follow != nil {
		o.giveUp = im.Follow.GiveUp
	}
	im.beats = o.hear
	return o
}

// hear notes that something has come, and what is waited for now.
func (o *onlooker) hear(waitsFor string) {
	now := time.Now().UnixNano()
	o.waitsFor.Store(waitsFor)
	o.cameAt.Store(now)
	if waitsFor == theSource {
		o.doneAt.Store(now)
	}
}

// see has another goroutine do a piece of work, and tells of what it waits for and of the end that was asked
// for. When the wait is given up, or ctx ends, it calls giveUp and does not wait for what does not end by itself.
func (o *onlooker) see(ctx context.Context, giveUp context.CancelFunc, work func(context.Context) error) error {
	if !o.fails() { // else the silence goes on, however often it is tried again
		o.hear(theSource)
	}
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(silence / 8)
	defer tick.Stop()
	asked, end := o.asked, ctx.Done()
	if giveUp == nil || o.heard {
		asked = nil // ctx ends then, or it was told
	}
	var over <-chan time.Time
	for {
		select {
		case err := <-done:
			return err
		case <-asked:
			asked = nil
			o.tellAsked()
		case <-o.giveUp:
			if giveUp == nil {
				return o.leave(done)
			}
			giveUp()
			return o.leave(done)
		case <-end:
			end, over = nil, time.After(giveUpGrace)
		case <-over:
			return ctx.Err()
		case <-tick.C:
			o.tellSilence()
		}
	}
}

// leave waits a moment for work that is to end.
func (o *onlooker) leave(done <-chan error) error {
	select {
	case err := <-done:
		return errors.Join(context.Canceled, err)
	case <-time.After(giveUpGrace):
		return context.Canceled
	}
}

// rest waits before what has failed is tried again: longer each time, and no longer when the end is asked for.
func (o *onlooker) rest() {
	o.pause = min(max(leastPause, 2*o.pause), mostPause)
	timer, tick := time.NewTimer(o.pause), time.NewTicker(silence/8)
	defer timer.Stop()
	defer tick.Stop()
	asked := o.asked
	if o.heard {
		asked = nil
	}
	for {
		select {
		case <-timer.C:
			return
		case <-asked:
			o.tellAsked()
			return
		case <-o.giveUp:
			return
		case <-tick.C:
			o.tellSilence()
		}
	}
}

func (o *onlooker) fails() bool { return !o.failing.IsZero() }

// due tells whether something is to be told even if it is not new.
func (o *onlooker) due() bool { return o.told.IsZero() || time.Since(o.told) >= tellEvery }

// tell tells of errors, of their end, and every now and then, after a piece of work.
func (o *onlooker) tell(err error, where Step) {
	switch {
	case err != nil:
		o.err = err
		o.fail(err, where)
	case o.fails():
		o.goOn(where)
	case o.due() || where.last:
		o.tellStep(where)
	}
}

// fail tells what fails, at once and every now and then.
func (o *onlooker) fail(err error, where Step) {
	begins := !o.fails()
	if begins {
		o.failing = time.Unix(0, o.cameAt.Load())
	}
	if begins || o.due() {
		where.Err, where.Away = err, time.Since(o.failing)
		o.tellStep(where)
	}
}

// goOn tells that what has failed does not anymore.
func (o *onlooker) goOn(where Step) {
	where.Back, where.Away = true, time.Since(o.failing)
	o.failing, o.err, o.pause = time.Time{}, nil, 0
	o.tellStep(where)
}

// tellSilence tells that nothing has come for a while, and that it comes again.
func (o *onlooker) tellSilence() {
	if o.fails() && o.doneAt.Load() > o.failing.UnixNano() {
		o.goOn(Step{})
	} else if o.fails() || o.silent() >= silence {
		o.fail(o.noAnswer(), Step{})
	}
}

// tellAsked tells at once that the end was asked for, and what it has to wait for.
func (o *onlooker) tellAsked() {
	o.heard = true
	if !o.fails() && o.silent() < askedSilence {
		o.tellStep(Step{})
		return
	}
	o.told = time.Time{}
	o.fail(o.noAnswer(), Step{})
}

// silent is how long nothing has come.
func (o *onlooker) silent() time.Duration { return time.Since(time.Unix(0, o.cameAt.Load())) }

// noAnswer says what is known of why nothing comes.
func (o *onlooker) noAnswer() error {
	if o.err != nil {
		return o.err
	}
	return fmt.Errorf("no answer from %s for %v", o.waitsFor.Load(), o.silent().Round(time.Second))
}

func (o *onlooker) tellStep(s Step) {
	o.told = time.Now()
	s.Ending = s.Ending || o.heard
	o.say(s)
}
