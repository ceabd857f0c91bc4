package sqlstore

import (
	"errors"
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// hints tell the tail where to look. Everybody gives them, without a lock, and the tail takes them.
type hints struct {
	wake chan struct{} // has a token when hint or look changed
	hint atomic.Int64  // newest revision that a hint told
	look atomic.Bool   // there may be rows beyond hint
}

// lookFor makes the tail look into the log for rows up to head, or for any if it is 0.
func (h *hints) lookFor(head int64) {
	if head == 0 {
		h.look.Store(true)
	}
	for old := h.hint.Load(); head > old; old = h.hint.Load() {
		if h.hint.CompareAndSwap(old, head) {
			break
		}
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// forget takes back a hint at a revision that the database has lost. A hint at one that is there after
// all comes again with the next head.
func (h *hints) forget(target int64) { h.hint.CompareAndSwap(target, 0) }

// noticeSetBack makes the tail look when a statement has found the database set back.
func (h *hints) noticeSetBack(err error) {
	if errors.Is(err, changelog.ErrSetBack) {
		h.lookFor(0)
	}
}
