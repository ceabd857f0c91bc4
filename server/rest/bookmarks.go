package rest

import (
	"math/rand/v2"
	"time"
)

// bookmarkBeforeEnd is how long before its end a watch sends a last bookmark.
const bookmarkBeforeEnd = 2 * time.Second

// bookmarks tells when a watch sends bookmarks: at intervals, and just before its end.
type bookmarks struct {
	c     <-chan time.Time
	timer *time.Timer
	every time.Duration
	end   time.Time // when the last bookmark is due
}

func newBookmarks(on bool, every, timeout time.Duration) *bookmarks {
	if !on {
		return &bookmarks{}
	}
	m := &bookmarks{every: every, end: time.Now().Add(timeout - bookmarkBeforeEnd)}
	m.timer = time.NewTimer(m.pause())
	m.c = m.timer.C
	return m
}

// pause until the next bookmark, spread a little so that watches don't write in step.
func (m *bookmarks) pause() time.Duration {
	p := m.every - m.every/4 + time.Duration(rand.Int64N(int64(m.every/4)+1))
	if left := time.Until(m.end); left > 0 && left < p {
		return left
	}
	return p
}

func (m *bookmarks) next() { m.timer.Reset(m.pause()) }

func (m *bookmarks) stop() {
	if m.timer != nil {
		m.timer.Stop()
	}
}
