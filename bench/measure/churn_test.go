package measure

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// shelf is a store whose events are right, except that it loses one, and that some answers fail.
type shelf struct {
	mu       sync.Mutex
	revision int64
	keys     map[int]Answer // what is there
	watch    *Watch
	lose     int64 // revision whose event nobody gets
	fail     bool  // each answer to a deletion
}

func (s *shelf) Put(_ context.Context, _, key, n int, at int64) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.keys[key]; now.Revision != at {
		return Answer{At: s.revision, Revision: now.Revision, N: now.N}, nil
	}
	s.revision++
	s.keys[key] = Answer{Revision: s.revision, N: n}
	s.send(n, false)
	return Answer{OK: true, At: s.revision}, nil
}

func (s *shelf) Delete(_ context.Context, _, key int, at int64) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.keys[key]
	if s.fail {
		return Answer{}, errors.New("no such luck")
	}
	if now.Revision != at {
		return Answer{At: s.revision, Revision: now.Revision, N: now.N}, nil
	}
	s.revision++
	delete(s.keys, key)
	s.send(now.N, true)
	return Answer{OK: true, At: s.revision}, nil
}

func (s *shelf) send(n int, deleted bool) {
	if s.revision != s.lose {
		s.watch.Take(Event{Known: true, Write: n, Sent: time.Now(), Revision: s.revision, Deleted: deleted}, time.Now())
	}
}

// TestChurn has writers that conflict. Nothing is missing, unless the store loses an event or fails.
func TestChurn(t *testing.T) {
	for name, c := range map[string]struct {
		lose           int64
		fail           bool
		missing, fails bool
	}{
		"all":    {},
		"lost":   {lose: 5, missing: true},
		"failed": {fail: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{lose: c.lose, fail: c.fail}
			s.keys = map[int]Answer{}
			audience, _ := NewAudience(t.Context())
			seated := make(chan struct{})
			audience.Seat(0, 0, func(w *Watch) { s.watch = w; close(seated) })
			<-seated
			meanwhile := false
			churn := &Churn{
				ChurnSize: ChurnSize{Writers: 4, Keys: 3, Resources: 1}, Store: s, Audience: audience, For: 50 * time.Millisecond, Rate: 4000,
				Meanwhile: func(ctx context.Context) { <-ctx.Done(); meanwhile = true },
			}
			took := churn.run(t.Context())
			audience.End()
			samples := churn.samples(took, Footprint{}, error.Error)
			if len(samples) != len(churn.Rows()) || samples[0].Value <= 0 || !meanwhile {
				t.Errorf("%+v, meanwhile %v", samples, meanwhile)
			}
			if got := samples[1].Value > 0; got != c.fails || got && !strings.Contains(samples[1].Note, "no such luck") {
				t.Errorf("failed writes: %+v", samples[1])
			}
			if got := samples[2].Value > 0; got != c.missing {
				t.Errorf("events: %+v", samples[2])
			}
			if !samples[4].None || !samples[5].None || !samples[6].None {
				t.Errorf("what was not measured has figures: %+v", samples[4:])
			}
		})
	}
}
