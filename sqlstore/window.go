package sqlstore

import (
	"sort"
	"time"
)

// eventOverhead is what an event costs beside its objects' bytes: Event, Entry, key,
// places in queues, and a little for what is derived from the entry.
const eventOverhead = 400

// window bounds the events that all resources keep in memory. It belongs to state and
// is guarded by its mutex.
type window struct {
	limit int
	bytes int
	order queue[*resource] // the resource of the oldest event, of the second oldest, …
	old   int              // how many of them, the oldest, leave when the window ages next

	marked []*topic // topics that have events in the batch that is being applied
}

// add appends ev to r's events and drops the oldest events of all resources until the
// window is within its limit. The limit holds for what an event pins: its entry and
// the one before.
func (w *window) add(r *resource, ev *Event) {
	r.events.push(ev)
	w.order.push(r)
	w.bytes += ev.size()
	for w.bytes > w.limit && w.order.len() > 0 {
		w.drop()
	}
}

// drop drops the oldest event.
func (w *window) drop() {
	oldest := w.order.pop()
	ev := oldest.events.pop()
	w.bytes -= ev.size()
	oldest.start = ev.Entry.Revision
	w.old = max(0, w.old-1)
}

func (w *window) clear() {
	w.bytes, w.old = 0, 0
	w.order = queue[*resource]{}
}

// ageStep is how many events leave while others wait.
const ageStep = 512

// age drops the events that were there when it was called last.
func (st *state) age() {
	for {
		st.mu.Lock()
		for n := 0; n < ageStep && st.window.old > 0; n++ {
			st.window.drop()
		}
		done := st.window.old == 0
		if done {
			st.window.old = st.window.order.len()
		}
		st.mu.Unlock()
		if done {
			return
		}
	}
}

// runAging lets events leave memory that are one to two times every old, which is Options.WindowAge. A watch that resumes comes
// back sooner, and finds later ones in the log; without this the window of a small cluster
// would have old states of all that changes, up to its bound.
func (st *state) runAging(every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			st.age()
		case <-stop:
			return
		}
	}
}

// takeMarked returns the channels that wake the watchers of marked topics and gives
// each topic a fresh one.
func (w *window) takeMarked() []chan struct{} {
	if len(w.marked) == 0 {
		return nil
	}
	woken := make([]chan struct{}, len(w.marked))
	for i, t := range w.marked {
		woken[i] = t.news.c
		t.news = newNews()
		t.marked = false
	}
	w.marked = w.marked[:0]
	return woken
}

// since returns the events of r after revision.
func (r *resource) since(revision int64) []*Event {
	all := r.events.all()
	i := sort.Search(len(all), func(i int) bool { return all[i].Entry.Revision > revision })
	return all[i:]
}

// queue is a slice that is taken from at its front without moving it each time.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) all() []T { return q.items[q.head:] }
func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head >= 32 && q.head > len(q.items)/2 {
		q.items = append(make([]T, 0, q.len()*2), q.all()...)
		q.head = 0
	}
	return v
}
