package upstream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/upstream"
)

// stuck is a source that answers nothing from a moment on, and fails each time after a while.
type stuck struct {
	*moving
	after time.Duration // a request fails; 0: never, whatever becomes of its context
	since time.Time     // it is stuck; zero: it is not
	until time.Time
}

var errStuck = errors.New("it is stuck")

func (s *stuck) wait(ctx context.Context) error {
	if now := time.Now(); s.since.IsZero() || now.Before(s.since) || !now.Before(s.until) {
		return nil
	}
	if s.after == 0 {
		time.Sleep(time.Until(s.until))
		return nil
	}
	select {
	case <-time.After(s.after):
		return errStuck
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stuck) Each(ctx context.Context, prefix string, f func([]upstream.Pair) error) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.moving.Each(ctx, prefix, f)
}

func (s *stuck) Changes(ctx context.Context, prefix string, after int64) (upstream.Changes, error) {
	if err := s.wait(ctx); err != nil {
		return upstream.Changes{}, err
	}
	time.Sleep(200 * time.Millisecond) // as etcd and kine, if there are none
	return s.moving.Changes(ctx, prefix, after)
}

// telling is an import of a stuck source, with what it tells and when.
type telling struct {
	*upstream.Import
	source *stuck
	begun  time.Time
	told   []upstream.Step
	at     []time.Duration // of told, after begun
}

func newTelling(t *testing.T, follow bool, after time.Duration) *telling {
	s := &telling{source: &stuck{moving: newMoving(), after: after}, begun: time.Now()}
	s.source.set("a", 1)
	s.Import = &upstream.Import{From: s.source, Layout: layout(t), Encryption: providers(t, "")}
	if follow {
		s.Follow = &upstream.Follow{From: s.source}
	}
	s.Tell = func(step upstream.Step) {
		s.told, s.at = append(s.told, step), append(s.at, time.Since(s.begun))
	}
	return s
}

// stick has the source be stuck for a time, from now on.
func (s *telling) stick(during time.Duration) {
	s.begun, s.told, s.at = time.Now(), nil, nil
	s.source.since, s.source.until = s.begun, s.begun.Add(during)
}

// judge fails if the first warning comes after 5 seconds, a later one more than 11 after the one before, or one
// does not tell since when; or if nothing is told of the end.
func (s *telling) judge(t *testing.T, during time.Duration) {
	t.Helper()
	last, warnings := -6*time.Second, 0
	for i, step := range s.told {
		at := s.at[i]
		if step.Err == nil && !step.Back {
			continue
		}
		if at > last+11*time.Second || step.Away < at-time.Second || step.Away > at+time.Second {
			t.Errorf("after %v: %+v; the one before was after %v", at, step, last)
		}
		if last = at; step.Back {
			if at < during || warnings < int(during/(11*time.Second)) {
				t.Errorf("after %d warnings and %v: %+v", warnings, at, step)
			}
			return
		}
		warnings++
	}
	t.Errorf("the end of the silence is not told: %v %+v", s.at, s.told)
}

// TestSilence has a source that is silent for a while, however often it is tried again.
func TestSilence(t *testing.T) {
	const during = 95 * time.Second
	for name, after := range map[string]time.Duration{"no answer": 0, "errors after 3 s": 3 * time.Second, "after 9 s": 9 * time.Second, "after 30 s": 30 * time.Second, "at once": time.Millisecond} {
		t.Run("survey/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTelling(t, true, after)
				s.stick(during)
				must(t, s.Survey(t.Context()))
				s.judge(t, during)
			})
		})
		t.Run("changes/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := newTelling(t, true, after), openLog(t, logtest.SQLite(t))
				must(t, s.Survey(t.Context()))
				ctx, end := context.WithCancel(t.Context())
				defer end()
				tell := s.Tell
				s.Tell = func(step upstream.Step) { // in the goroutine of Run
					if tell(step); step.Back {
						end()
					} else if s.source.since.IsZero() {
						s.stick(during)
					}
				}
				_, err := s.Run(ctx, log)
				must(t, err)
				s.judge(t, during)
			})
		})
	}
}

// TestSilencePlain has a source that is silent while it is surveyed, or read, and is not followed.
func TestSilencePlain(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *telling, context.Context) error{
		"survey": func(_ *testing.T, s *telling, ctx context.Context) error { return s.Survey(ctx) },
		"dry run": func(_ *testing.T, s *telling, ctx context.Context) error {
			_, err := s.Try(ctx)
			return err
		},
		"run": func(t *testing.T, s *telling, ctx context.Context) error {
			_, err := s.Run(ctx, openLog(t, logtest.SQLite(t)))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const during = 25 * time.Second
				s := newTelling(t, false, 0)
				s.stick(during)
				must(t, run(t, s, t.Context()))
				if len(s.told) < 2 || s.told[0].Err == nil || s.at[0] > 5*time.Second {
					t.Errorf("told is %v: %+v", s.at, s.told)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				s := newTelling(t, false, 0)
				s.stick(time.Minute)
				ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
				defer end()
				if err := run(t, s, ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(s.begun) > 3*time.Second {
					t.Errorf("after %v: %v", time.Since(s.begun), err)
				}
				time.Sleep(time.Minute) // until the source has ended
			})
		})
	}
}

// TestSilenceAsked asks for the end before a warning is due, and again while nothing is amiss.
func TestSilenceAsked(t *testing.T) {
	for name, during := range map[string]time.Duration{"silent": 10 * time.Second, "well": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := newTelling(t, true, 0), openLog(t, logtest.SQLite(t))
				must(t, s.Survey(t.Context()))
				ctx, end := context.WithCancel(t.Context())
				defer end()
				tell := s.Tell
				s.Tell = func(step upstream.Step) {
					if tell(step); s.source.since.IsZero() {
						s.stick(during)
						time.AfterFunc(2*time.Second, end)
					}
				}
				_, err := s.Run(ctx, log)
				must(t, err)
				if at := s.at[0]; at < 2*time.Second || at > 2100*time.Millisecond || !s.told[0].Ending {
					t.Fatalf("after %v: %+v", at, s.told[0])
				}
				first := s.told[0]
				if named := first.Err != nil && strings.Contains(first.Err.Error(), "no answer from the source for 2s") && first.Away > time.Second; named != (during > 0) {
					t.Errorf("%+v", first)
				}
			})
		})
	}
}
