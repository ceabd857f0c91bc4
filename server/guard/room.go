package guard

import (
	"sync"
	"time"
)

// room bounds what requests hold while they wait for their clients, for each user and for all users together. A user at
// the bound has room again when one of the user's own requests is done. If all users together are at the bound, the
// user who holds most loses a request to a user who holds less, so that no user is locked out by others.
type room struct {
	each, all bound
	// waited tells for how long a call has waited for its client, without a pause.
	waited func(*Call, time.Time) time.Duration

	mu      sync.Mutex // guards what follows, and all places
	tenants map[string]*tenant
	total   bound
	freed   chan struct{} // closed when there may be room; nil: nobody waits for it
	lost    int64         // how many calls have had to go
}

// bound is how many calls, and how many bytes.
type bound struct {
	calls int
	bytes int64
}

func (b bound) beyond(most bound) bool { return b.calls > most.calls || b.bytes > most.bytes }

func (b bound) plus(o bound) bound { return bound{b.calls + o.calls, b.bytes + o.bytes} }

func (b bound) minus(o bound) bound { return bound{b.calls - o.calls, b.bytes - o.bytes} }

// heavierThan compares the shares of most, of which the greater counts.
func (b bound) heavierThan(o, most bound) bool {
	share := func(b bound) float64 {
		return max(float64(b.calls)/float64(most.calls), float64(b.bytes)/float64(most.bytes))
	}
	return share(b) > share(o)
}

// tenant is a user, with what the user's requests hold.
type tenant struct {
	name        string
	held        bound
	first, last *place // the one that came first, and the one that came last
	waiting     int    // calls that wait for room
}

// place is what a call holds in a room.
type place struct {
	call       *Call
	of         *tenant // nil: the call has no place
	held       bound
	gone       bool // the place was taken away: the call must end
	prev, next *place
}

func newRoom(each bound, waited func(*Call, time.Time) time.Duration) *room {
	return &room{each: each, all: bound{allShares * each.calls, allShares * each.bytes}, waited: waited, tenants: map[string]*tenant{}}
}

// allShares is the bound of all users together, in multiples of the bound of one user.
const allShares = 4

// take gives a call of a user a place, and tells whether there was room for it. The calls in gone have lost their
// places and must be ended. A call of the same user loses its place only if it has waited for its client for longer
// than patience.
func (r *room) take(p *place, who string, size bound, patience time.Duration) (ok bool, gone []*Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenant(who)
	for {
		other := (*place)(nil)
		switch {
		case t.first != nil && t.held.plus(size).beyond(r.each):
			other = r.slowest(t, patience)
		case r.total != bound{} && r.total.plus(size).beyond(r.all):
			if heaviest := r.heaviest(); heaviest != t && heaviest.held.heavierThan(t.held.plus(size), r.each) {
				other = r.slowest(heaviest, 0)
			} else { // the heaviest is the user, or very many users hold a little each
				other = r.slowest(heaviest, patience)
			}
		default:
			r.seat(p, t, size)
			return true, gone
		}
		if other == nil {
			r.leaveEmpty(t)
			return false, gone
		}
		r.remove(other)
		other.gone = true
		r.lost++
		gone = append(gone, other.call)
	}
}

// await returns what is closed when there may be room again, and has the user wait for it; nil if too
// many of the user's calls wait already. After it the call must stopWaiting.
func (r *room) await(who string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenant(who)
	if t.waiting >= mostWaiting {
		r.leaveEmpty(t)
		return nil
	}
	t.waiting++
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	return r.freed
}

// mostWaiting is how many calls of a user may wait for room. Of each, the connection has up to 256 KiB.
const mostWaiting = 64

func (r *room) stopWaiting(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenant(who)
	t.waiting--
	r.leaveEmpty(t)
}

// shrink leaves a call only a part of what it holds.
func (r *room) shrink(p *place, to bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.of == nil {
		return
	}
	less := p.held.minus(to)
	p.held, p.of.held, r.total = to, p.of.held.minus(less), r.total.minus(less)
	r.free()
}

// leave gives a place back. It is false if the call has lost its place.
func (r *room) leave(p *place) bool {
	if p.call == nil {
		return true // it never had one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.of != nil {
		r.remove(p)
	}
	return !p.gone
}

// figures are for metrics.
func (r *room) figures() (calls int, bytes, lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total.calls, r.total.bytes, r.lost
}

// What follows is called with r.mu held.

func (r *room) tenant(who string) *tenant {
	t := r.tenants[who]
	if t == nil {
		t = &tenant{name: who}
		r.tenants[who] = t
	}
	return t
}

func (r *room) leaveEmpty(t *tenant) {
	if t.first == nil && t.waiting == 0 {
		delete(r.tenants, t.name)
	}
}

func (r *room) seat(p *place, t *tenant, size bound) {
	p.of, p.held, p.prev = t, size, t.last
	if t.last == nil {
		t.first = p
	} else {
		t.last.next = p
	}
	t.last = p
	t.held, r.total = t.held.plus(size), r.total.plus(size)
}

func (r *room) remove(p *place) {
	t := p.of
	if p.prev == nil {
		t.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		t.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	t.held, r.total = t.held.minus(p.held), r.total.minus(p.held)
	p.of, p.prev, p.next = nil, nil, nil
	r.leaveEmpty(t)
	r.free()
}

func (r *room) free() {
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// slowest returns the place of a user's call that has waited for its client the longest, and longer than
// patience; of those that do not wait it returns the first. It is nil if there is none.
func (r *room) slowest(t *tenant, patience time.Duration) (slowest *place) {
	now, most := time.Now(), time.Duration(-1)
	for p := t.first; p != nil; p = p.next {
		if waited := r.waited(p.call, now); waited > most && waited >= patience {
			slowest, most = p, waited
		}
	}
	return slowest
}

func (r *room) heaviest() (heaviest *tenant) {
	for _, t := range r.tenants {
		if heaviest == nil || t.held.heavierThan(heaviest.held, r.each) {
			heaviest = t
		}
	}
	return heaviest
}
