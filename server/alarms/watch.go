package alarms

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says what a Watch looks at.
type Config struct {
	// Facts returns those of this moment. It must not ask the database.
	Facts func() Facts
	// Tell makes an event when an alarm has begun or ended. After an error it is called again.
	Tell   func(context.Context, Change) error
	Logger *slog.Logger
}

// Change is the beginning or the end of an alarm.
type Change struct {
	Alarm
	Begins bool
	Since  time.Time // when the alarm began
	Detail string    // figures of its beginning
}

// Active is an alarm that has begun.
type Active struct {
	Alarm
	Since  time.Time
	Detail string // the newest figures
}

const (
	every = 5 * time.Second
	// clearFor is how long a condition has to be over until the alarm ends, so that one which comes and
	// goes makes few events.
	clearFor = 2 * time.Minute
	// tellWithin bounds the making of an event.
	tellWithin = 5 * time.Second
)

// Watch looks at all alarms every few seconds.
type Watch struct {
	config Config

	mu     sync.Mutex
	states []state // as All; guarded by mu, like recent
	recent Recent

	samples samples // of the goroutine that looks
	told    []bool  // of the goroutine that looks: an event says that the alarm has begun
}

// state is what is known of an alarm.
type state struct {
	since  time.Time // when the condition began to hold; zero: it does not
	last   time.Time // when it held last
	active bool
	detail string
}

// New returns a Watch that has not looked yet.
func New(c Config) *Watch {
	return &Watch{config: c, states: make([]state, len(All)), told: make([]bool, len(All)), samples: samples{{at: time.Now()}}}
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.look(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) look(ctx context.Context, now time.Time) {
	f := w.config.Facts()
	f.Recent = w.samples.add(now, f.Counts)
	for _, c := range w.judge(&f, now) {
		w.log(c)
	}
	w.tell(ctx)
}

// judge brings the states in line with the facts, and returns the alarms that have begun or ended.
func (w *Watch) judge(f *Facts, now time.Time) (changes []Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recent = f.Recent
	for i, a := range All {
		s := &w.states[i]
		was := s.active
		if detail := a.check(f, now); detail != "" {
			s.holds(a, now, detail)
		} else {
			s.holdsNot(now)
		}
		if s.active != was {
			changes = append(changes, Change{Alarm: a, Begins: s.active, Since: s.since, Detail: s.detail})
		}
		if !s.active && was {
			*s = state{}
		}
	}
	return changes
}

func (s *state) holds(a Alarm, now time.Time, detail string) {
	if s.since.IsZero() {
		s.since = now
	}
	s.last, s.detail = now, detail
	s.active = s.active || now.Sub(s.since) >= a.For
}

func (s *state) holdsNot(now time.Time) {
	switch {
	case !s.active:
		*s = state{}
	case now.Sub(s.last) >= clearFor:
		s.active = false
	}
}

func (w *Watch) log(c Change) {
	if c.Begins {
		w.config.Logger.Warn("an alarm begins", "alarm", c.Name, "what", c.Text, "detail", c.Detail)
		return
	}
	w.config.Logger.Info("an alarm has ended", "alarm", c.Name, "after", time.Since(c.Since))
}

// tell makes the events that are missing. One that cannot be made is tried again at the next look.
func (w *Watch) tell(ctx context.Context) {
	for i, a := range All {
		w.mu.Lock()
		s := w.states[i]
		w.mu.Unlock()
		if s.active == w.told[i] {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, tellWithin)
		err := w.config.Tell(ctx, Change{Alarm: a, Begins: s.active, Since: s.since, Detail: s.detail})
		cancel()
		if err == nil {
			w.told[i] = s.active
		}
	}
}

// Active returns the alarms that have begun, in the order of All.
func (w *Watch) Active() (active []Active) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, a := range All {
		if s := w.states[i]; s.active {
			active = append(active, Active{Alarm: a, Since: s.since, Detail: s.detail})
		}
	}
	return active
}

// Warnings are the alarms for everybody.
func (w *Watch) Warnings() (lines []string) {
	for _, a := range w.Active() {
		lines = append(lines, "alarm "+a.Name+": "+a.Text)
	}
	return lines
}

// Recent returns what was counted in the minute before the last look.
func (w *Watch) Recent() Recent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recent
}

var alarm = prometheus.NewDesc("plinth_alarm", "1 while the alarm is on.", []string{"alarm"}, nil)

// Describe implements prometheus.Collector.
func (w *Watch) Describe(out chan<- *prometheus.Desc) { out <- alarm }

// Collect implements prometheus.Collector. Every alarm has a series, so that one that never was is known.
func (w *Watch) Collect(out chan<- prometheus.Metric) {
	on := map[string]bool{}
	for _, a := range w.Active() {
		on[a.Name] = true
	}
	for _, a := range All {
		value := 0.0
		if on[a.Name] {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(alarm, prometheus.GaugeValue, value, a.Name)
	}
}
