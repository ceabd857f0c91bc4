package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	one = "torture-0-a/cm-1"
	two = "torture-0-a/cm-2"
	all = "torture-0-a/"
)

// goodHistory is what two clients and a watch were told of two objects, one write after the other, as it
// may have happened: each write takes a millisecond, and is followed by a read of it.
func goodHistory() *History {
	begun := time.UnixMilli(1_000_000)
	h := &History{Begun: begun, Keeps: 3 * time.Second}
	at := time.Duration(0)
	call := func(c Call) *Call {
		c.Begin, c.End = at, at+time.Millisecond
		if c.Kind == Pages {
			c.Settled = c.End
		}
		at += 2 * time.Millisecond
		h.Calls = append(h.Calls, &c)
		return &c
	}
	write := func(id, kind string, now Item, sent Content, expect int64) {
		c := call(Call{ID: id, Kind: kind, Key: now.Key, Sent: sent, Expect: expect, Status: 200, Revision: now.Revision, Items: []Item{now}})
		if kind == Delete {
			c.Revision, c.Items = 0, nil
		}
		h.Log = append(h.Log, Row{Item: now, Deleted: kind == Delete, At: begun.Add(c.End).UnixMilli(), By: id})
	}
	one10, two11 := Item{one, 10, Content{V: "1"}}, Item{two, 11, Content{V: "2"}}
	one12, two13, one14 := Item{one, 12, Content{V: "3"}}, Item{two, 13, Content{V: "2"}}, Item{one, 14, Content{V: "3", A: "4"}}
	write("w10", Create, one10, Content{V: "1"}, 0)
	write("w11", Create, two11, Content{V: "2"}, 0)
	call(Call{ID: "l11", Kind: List, Key: all, Status: 200, Revision: 11, Items: []Item{one10, two11}})
	write("w12", Update, one12, Content{V: "3"}, 10)
	call(Call{ID: "g12", Kind: Get, Key: one, Status: 200, Revision: 12, Items: []Item{one12}})
	call(Call{ID: "old", Kind: Update, Key: one, Sent: Content{V: "5"}, Expect: 10, Status: 409})
	write("w13", Delete, two13, Content{}, 11)
	call(Call{ID: "gone", Kind: Get, Key: two, Status: 404})
	write("w14", Apply, one14, Content{A: "4"}, 0)
	call(Call{ID: "p14", Kind: Pages, Key: all, Status: 200, Revision: 14, Items: []Item{one14}})
	call(Call{ID: "e11", Kind: List, Key: all, Read: Exact, At: 11, Status: 200, Revision: 11, Items: []Item{one10, two11}})
	call(Call{ID: "lost", Kind: Patch, Key: one, Sent: Content{V: "6"}})                  // not written
	call(Call{ID: "refused", Kind: Create, Key: two, Sent: Content{V: "7"}, Status: 503}) // not written
	event := func(kind string, i Item) Event { return Event{Type: kind, Item: i, At: at} }
	h.Watches = []*Watch{{Name: "w", Prefix: all, Streams: []*Stream{
		{Start: 9, End: at, Events: []Event{event(Added, one10), event(Added, two11), event(Modified, one12), event(Bookmark, Item{Revision: 12})}},
		{Start: 12, End: at, Status: 503, Events: []Event{event(Deleted, two13), event(Modified, one14)}},
		{State: true, End: at, Events: []Event{event(Added, one14), {Type: Bookmark, Item: Item{Revision: 14}, Initial: true, At: at}}},
	}}}
	h.Digests = []Digest{{"database", 14, 1, "abc"}, {"replica 0", 14, 1, "abc"}}
	return h
}

// call returns the call of an id.
func (h *History) call(id string) *Call {
	return h.Calls[slices.IndexFunc(h.Calls, func(c *Call) bool { return c.ID == id })]
}

// forget takes a change out of the log.
func (h *History) forget(revision int64) {
	h.Log = slices.DeleteFunc(h.Log, func(r Row) bool { return r.Revision == revision })
}

// late is a time after which everything of a good history is older than must be remembered.
const late = 10 * time.Second

// TestCheck spoils a good history in one place at a time. Check names what is broken then, and nothing else.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*History)
		want  []string
	}{
		{"nothing", func(*History) {}, nil},
		{"a write without an answer has happened", func(h *History) {
			h.Log = append(h.Log, Row{Item: Item{one, 15, Content{V: "6", A: "4"}}, At: h.Log[4].At + 9, By: "lost"})
			h.Watches[0].Streams[2].Events = append(h.Watches[0].Streams[2].Events, Event{Type: Modified, Item: h.Log[5].Item, At: late})
		}, nil},
		{"a version is forgotten in time", func(h *History) {
			c := h.call("e11")
			c.Status, c.Items, c.Revision, c.Begin, c.End = 410, nil, 0, late, late
			h.Watches[0].Streams[1].Status, h.Watches[0].Streams[1].End, h.Watches[0].Streams[1].Events = 410, late, nil
		}, nil},

		{"an acknowledged write is lost", func(h *History) { h.forget(14); h.Watches = nil; h.call("p14").Items[0] = h.Log[2].Item }, []string{Durable, Linearizable}},
		{"a write happened twice", func(h *History) {
			h.Log = append(h.Log, Row{Item: Item{one, 15, Content{V: "3", A: "4"}}, By: "w14"})
			h.Watches[0].Streams[2].Events = append(h.Watches[0].Streams[2].Events, Event{Type: Modified, Item: h.Log[5].Item, At: late})
		}, []string{Once}},
		{"a refused write happened", func(h *History) { h.call("lost").Status = 503; h.call("lost").ID = "w14"; h.call("w14").ID = "other" }, []string{Durable, Once}},
		{"nobody made a change", func(h *History) { h.call("w14").ID, h.call("w14").Status = "other", 503 }, []string{Once, Linearizable}},
		{"an answer shows what is not there", func(h *History) { h.call("w12").Items = []Item{{one, 12, Content{V: "0"}}} }, []string{Answers, Linearizable}},
		{"another value is written than was sent", func(h *History) { h.call("w12").Sent.V = "0" }, []string{Answers}},
		{"a write goes to another object", func(h *History) { h.call("w11").Key = one; h.call("w11").Items = nil }, []string{Answers, Linearizable}},
		{"a get is of a version that never was", func(h *History) { h.call("g12").Items[0].V = "0" }, []string{Answers, Linearizable}},
		{"a get is old", func(h *History) { c := h.call("g12"); c.Revision, c.Items = 10, []Item{h.Log[0].Item} }, []string{Linearizable, Fresh}},
		{"a list is old", func(h *History) { c := h.call("p14"); c.Revision, c.Items = 13, []Item{h.Log[2].Item} }, []string{Linearizable, Fresh}},
		{"a list lacks an object", func(h *History) { c := h.call("l11"); c.Items = c.Items[:1] }, []string{ExactState, Linearizable}},
		{"a list has an object twice", func(h *History) { c := h.call("l11"); c.Items = append(c.Items, c.Items[0]) }, []string{ExactState}},
		{"the pages of a list are of two revisions", func(h *History) { h.call("p14").Revision = 12 }, []string{ExactState, Fresh, Linearizable}},
		{"a list is of another revision than was asked for", func(h *History) { c := h.call("e11"); c.Revision = 10; c.Items = c.Items[:1] }, []string{ExactState}},
		{"a list is older than was asked for", func(h *History) { h.call("e11").Read, h.call("e11").At = NotOlder, 12 }, []string{Fresh}},
		{"an object is told to be gone", func(h *History) { c := h.call("g12"); c.Status, c.Items, c.Revision = 404, nil, 0 }, []string{Linearizable}},
		{"an update is refused without a conflict", func(h *History) { h.call("old").Expect = 12 }, []string{Linearizable}},
		{"two updates of one version succeed", func(h *History) {
			h.call("w14").Kind, h.call("w14").Expect = Update, 10
			h.call("w14").Sent = Content{V: "3", A: "4"}
		}, []string{Linearizable}},
		{"a request in order is refused", func(h *History) { h.call("lost").Status = 422 }, []string{Reason}},
		{"a version is forgotten too early", func(h *History) { c := h.call("e11"); c.Status, c.Items, c.Revision = 410, nil, 0 }, []string{Resumable}},

		{"an event is missing", func(h *History) { s := h.Watches[0].Streams[0]; s.Events = slices.Delete(s.Events, 1, 2) }, []string{Complete}},
		{"events are out of order", func(h *History) {
			e := h.Watches[0].Streams[0].Events
			e[0], e[1] = e[1], e[0]
		}, []string{Complete}},
		{"an event comes twice", func(h *History) {
			s := h.Watches[0].Streams[0]
			s.Events = slices.Insert(s.Events, 1, s.Events[0])
		}, []string{Complete}},
		{"an event is of another type", func(h *History) { h.Watches[0].Streams[0].Events[2].Type = Added }, []string{Complete}},
		{"an event has another content", func(h *History) { h.Watches[0].Streams[0].Events[2].V = "0" }, []string{Complete}},
		{"an event is of another namespace", func(h *History) { h.Watches[0].Prefix = "torture-0-b/" }, []string{Complete, ExactState}},
		{"an event comes once more after the watch was resumed", func(h *History) {
			s := h.Watches[0].Streams[1]
			s.Events = slices.Insert(s.Events, 0, h.Watches[0].Streams[0].Events[2])
		}, []string{Complete}},
		{"the first event after the watch was resumed is missing", func(h *History) { s := h.Watches[0].Streams[1]; s.Events = s.Events[1:] }, []string{Complete}},
		{"a bookmark is ahead of events", func(h *History) { h.Watches[0].Streams[0].Events[3].Revision = 13 }, []string{Bookmarks}},
		{"the state that a watch begins with lacks an object", func(h *History) { s := h.Watches[0].Streams[2]; s.Events = s.Events[1:] }, []string{ExactState}},
		{"the state that a watch begins with is not that of its bookmark", func(h *History) { h.Watches[0].Streams[2].Events[1].Revision = 12 }, []string{ExactState}},
		{"a watch is told too early that its version is forgotten", func(h *History) { h.Watches[0].Streams[1].Status = 410; h.Watches[0].Streams[1].Events = nil }, []string{Resumable}},
		{"a watch is refused", func(h *History) { h.Watches[0].Streams[1].Status = 403 }, []string{Reason}},
		{"a watch does not come to the end", func(h *History) {
			h.Watches[0].Streams = h.Watches[0].Streams[:2]
			h.Watches[0].Streams[1].Events = h.Watches[0].Streams[1].Events[:1]
		}, []string{Ends}},
		{"a watch is ahead of a read", func(h *History) {
			h.Watches[0].Streams[0].Events[2].At = h.call("l11").Begin - 1
		}, []string{Fresh}},
		{"memory differs from the database", func(h *History) { h.Digests[1].Sum = "abd" }, []string{SameMemory}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := goodHistory()
			c.spoil(h)
			broken := Check(h)
			if diff := cmp.Diff(sortedSet(c.want), guaranteesOf(broken)); diff != "" {
				t.Errorf("broken guarantees (-want +got):\n%s\n%+v", diff, broken)
			}
		})
	}
}

func guaranteesOf(broken []Broken) (names []string) {
	for _, b := range broken {
		names = append(names, b.Guarantee)
	}
	return sortedSet(names)
}

func sortedSet(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// TestShrink leaves one call and what explains it out of a history, and draws it.
func TestShrink(t *testing.T) {
	h := goodHistory()
	c := h.call("g12")
	c.Revision, c.Items = 10, []Item{h.Log[0].Item}
	for _, fault := range Check(h) {
		small, b := Shrink(h, fault, time.Minute)
		if !b.same(&fault) || len(small.Calls) > 2 || len(small.Watches) > 0 {
			t.Errorf("%s: %d calls and %d watches are left of %d and %d: %+v", fault.Guarantee, len(small.Calls), len(small.Watches), len(h.Calls), len(h.Watches), b)
		}
	}
	files, err := save(h, Check(h), filepath.Join(t.TempDir(), "fault"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(guaranteesOf(Check(h)), guaranteesOf(Check(again))); diff != "" {
		t.Errorf("what was saved is judged otherwise: %s", diff)
	}
	if !strings.HasSuffix(files[2], ".html") {
		t.Errorf("files %q", files)
	}
}

// load reads a history that Save has written.
func load(path string) (*History, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	h := new(History)
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}
