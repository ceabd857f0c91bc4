package guard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// roomOf returns a room in which calls have waited as long as waits says.
func roomOf(each bound, waits map[*Call]time.Duration) *room {
	return newRoom(each, func(x *Call, _ time.Time) time.Duration { return waits[x] })
}

func placed() *place { return &place{call: &Call{}} }

// A user at the bound has room again when one of the user's calls leaves, or has waited for too long.
func TestRoomOfOneUser(t *testing.T) {
	waits := map[*Call]time.Duration{}
	r := roomOf(bound{3, 100}, waits)
	a, b, c, d := placed(), placed(), placed(), placed()
	for _, p := range []*place{a, b} {
		if ok, gone := r.take(p, "ann", bound{1, 40}, time.Second); !ok || gone != nil {
			t.Fatalf("there is no room: %v", gone)
		}
	}
	if ok, gone := r.take(c, "ann", bound{1, 40}, time.Second); ok || gone != nil {
		t.Error("more bytes than there is room for")
	}
	freed := r.await("ann")
	if !r.leave(a) {
		t.Error("a call has lost its place, but nobody needed it")
	}
	select {
	case <-freed:
	default:
		t.Error("nobody hears that there is room")
	}
	r.stopWaiting("ann")
	if ok, _ := r.take(c, "ann", bound{1, 40}, time.Second); !ok {
		t.Error("there is no room where a call has left")
	}
	waits[b.call], waits[c.call] = 3*time.Second, 2*time.Second
	ok, gone := r.take(d, "ann", bound{1, 40}, time.Second)
	if !ok || len(gone) != 1 || gone[0] != b.call || r.leave(b) {
		t.Errorf("the call that has waited the longest does not make room: %v", gone)
	}
	r.shrink(c, bound{0, 10})
	if ok, _ := r.take(placed(), "ann", bound{1, 50}, time.Hour); !ok {
		t.Error("there is no room where a call needs less")
	}
}

// Whatever others hold, a user who holds little has room.
func TestRoomOfManyUsers(t *testing.T) {
	r := roomOf(bound{10, 1000}, nil)
	held := map[*Call]*place{}
	take := func(who string, size bound) bool {
		p := placed()
		ok, gone := r.take(p, who, size, time.Hour)
		if ok {
			held[p.call] = p
		}
		for _, x := range gone {
			if r.leave(held[x]) {
				t.Error("a call that has to go keeps its place")
			}
			delete(held, x)
		}
		return ok
	}
	for i := range 5000 {
		who := fmt.Sprint("user", rand.IntN(20))
		take(who, bound{1, rand.Int64N(500)})
		if total := r.total; total.beyond(r.all) {
			t.Fatalf("step %d: all hold %+v", i, total)
		}
		for _, u := range r.tenants {
			if u.held.beyond(r.each) {
				t.Fatalf("step %d: %s holds %+v", i, u.name, u.held)
			}
		}
		if victim := placed(); i%7 == 0 {
			ok, gone := r.take(victim, "victim", bound{1, 1}, time.Hour)
			if !ok {
				t.Fatalf("step %d: there is no room for somebody who holds nothing, beside %+v", i, r.total)
			}
			for _, x := range gone {
				delete(held, x)
			}
			r.leave(victim)
		}
	}
	for _, p := range held {
		if !r.leave(p) {
			t.Error("a call has lost its place, and was not told")
		}
	}
	if r.total != (bound{}) || len(r.tenants) != 0 {
		t.Errorf("%+v of %d users are left", r.total, len(r.tenants))
	}
}

// Few wait for room at once.
func TestRoomWaiters(t *testing.T) {
	r := roomOf(bound{1, 1}, nil)
	for range mostWaiting {
		if r.await("ann") == nil {
			t.Fatal("nobody may wait")
		}
	}
	if r.await("ann") != nil || r.await("bob") == nil {
		t.Error("too many wait, or another user may not")
	}
	for range mostWaiting {
		r.stopWaiting("ann")
	}
	r.stopWaiting("bob")
	if len(r.tenants) != 0 {
		t.Error("users are left")
	}
}

// BenchmarkRoom is what the room costs a request whose body comes at once.
func BenchmarkRoom(b *testing.B) {
	r := roomOf(bound{256, 16 << 20}, nil)
	b.ReportAllocs()
	x := &Call{}
	for b.Loop() {
		p := place{call: x}
		r.take(&p, "ann", bound{1, 1000}, bodyPatience)
		r.shrink(&p, bound{bytes: 1000})
		r.leave(&p)
	}
}
