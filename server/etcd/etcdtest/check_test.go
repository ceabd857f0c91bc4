package etcdtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// correct is a history without faults: two clients, a lease, a call without an answer, and watches of
// everything and of a part, one of which goes on with another stream.
func correct() *History {
	h := NewHistory()
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	kv := func(key, value string, create, mod, version, lease int64) KV {
		return KV{key, value, create, mod, version, lease}
	}
	a1, a2 := kv("p/a", "1", 2, 2, 1, 0), kv("p/a", "2", 2, 3, 2, 0)
	a4, b4 := kv("p/a", "4", 2, 4, 3, 0), kv("p/b", "4", 4, 4, 1, 0)
	e5 := kv("q/e", "5", 5, 5, 1, 9)
	h.Calls = []Call{
		{Client: 0, Begin: at(1), End: at(2), Kind: Put, Keys: []string{"p/a"}, Value: "1", Compare: true, Answer: Answer{Revision: 2, Succeeded: true}},
		{Client: 1, Begin: at(3), End: at(4), Kind: Get, Keys: []string{"p/a"}, Answer: Answer{Revision: 2, Succeeded: true, KVs: []KV{a1}}},
		{Client: 0, Begin: at(5), End: at(6), Kind: Put, Keys: []string{"p/a"}, Value: "2", Compare: true, Expect: 2, Error: "connection lost"},
		{Client: 1, Begin: at(5), End: at(6), Kind: Put, Keys: []string{"p/a"}, Value: "x", Compare: true, Expect: 2, Error: "connection lost"},
		{Client: 1, Begin: at(7), End: at(8), Kind: Put, Keys: []string{"p/a"}, Value: "3", Compare: true, Expect: 2, Answer: Answer{Revision: 3, KVs: []KV{a2}}},
		{Client: 0, Begin: at(9), End: at(10), Kind: Put, Keys: []string{"p/b", "p/a"}, Value: "4", Answer: Answer{Revision: 4, Succeeded: true}},
		{Client: 0, Begin: at(11), End: at(12), Kind: Put, Keys: []string{"q/e"}, Value: "5", Lease: 9, Compare: true, Answer: Answer{Revision: 5, Succeeded: true}},
		{Client: 1, Begin: at(13), End: at(14), Kind: List, Keys: []string{"p/", "p0"}, Limit: 1, Answer: Answer{Revision: 5, Succeeded: true, KVs: []KV{a4}, Count: 2, More: true}},
		{Client: 1, Begin: at(17), End: at(18), Kind: List, Keys: []string{"p/a\x00", "p0"}, Limit: 1, At: 5, Answer: Answer{Revision: 6, Succeeded: true, KVs: []KV{b4}, Count: 1}},
		{Client: 0, Begin: at(15), End: at(16), Kind: Delete, Keys: []string{"p/b"}, Compare: true, Expect: 4, Answer: Answer{Revision: 6, Succeeded: true}},
	}
	h.Leases = []*Lease{{ID: 9, TTL: at(5), Renewed: at(10), Gone: true}}
	before := func(c Change, kv KV) Change { c.Before = &kv; return c }
	put := func(kv KV) Change { return Change{KV: kv} }
	gone := func(key string, mod int64) Change { return Change{Delete: true, KV: KV{Key: key, Mod: mod}} }
	h.Watches = []*Watch{
		{Name: "all", From: "", End: "z", Streams: []*Stream{{Start: 2, Responses: []Response{
			{At: at(1), Revision: 1},
			{At: at(2), Revision: 2, Changes: []Change{put(a1)}},
			{At: at(10), Revision: 4, Changes: []Change{put(a2), put(b4), put(a4)}},
			{At: at(12), Revision: 5, Changes: []Change{put(e5)}},
			{At: at(16), Revision: 6, Changes: []Change{gone("p/b", 6)}},
			{At: at(20), Revision: 7, Changes: []Change{gone("q/e", 7)}},
		}}}},
		{Name: "part", From: "p/", End: "p0", Before: true, Streams: []*Stream{
			{Start: 2, Responses: []Response{
				{At: at(2), Revision: 2, Changes: []Change{put(a1)}},
				{At: at(7), Revision: 3, Changes: []Change{before(put(a2), a1)}},
			}},
			{Start: 4, Responses: []Response{
				{At: at(11), Revision: 4, Changes: []Change{before(put(a4), a2), put(b4)}},
				{At: at(13), Revision: 5, Progress: true},
				{At: at(16), Revision: 6, Changes: []Change{before(gone("p/b", 6), b4)}},
			}},
		}},
	}
	return h
}

func (h *History) stream(watch, stream int) *Stream { return h.Watches[watch].Streams[stream] }

// TestCheck plays faults to the checks, each of which must be found, and named.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*History)
		want  string // in one of the faults; none if empty
	}{
		{"correct", func(*History) {}, ""},
		{"lost write", func(h *History) {
			h.Calls = append(h.Calls, Call{Client: 1, Begin: 17e9, End: 18e9, Kind: Put, Keys: []string{"p/c"}, Value: "lost", Answer: Answer{Revision: 8, Succeeded: true}})
		}, "wrote, but revision 8 has []"},
		{"lost write, replaced by another", func(h *History) { h.Calls[0].Value = "0" }, "wrote, but revision 2 has"},
		{"write of nobody", func(h *History) { h.Calls = h.Calls[:len(h.Calls)-1] }, "revision 6 was made by nobody"},
		{"repeated write", func(h *History) {
			again := KV{"p/a", "4", 2, 8, 4, 0}
			for _, s := range []*Stream{h.stream(0, 0), h.stream(1, 1)} {
				c := Change{KV: again}
				if s == h.stream(1, 1) {
					c.Before = &KV{"p/a", "4", 2, 4, 3, 0}
				}
				s.Responses = append(s.Responses, Response{At: 21e9, Revision: 8, Changes: []Change{c}})
			}
		}, "revision 8 was made by nobody"},
		{"write despite its comparison", func(h *History) { h.Calls[0].Expect = 1 }, "wrote, but the mod revision was 0"},
		{"failed comparison that holds", func(h *History) { h.Calls[4].Expect = 3 }, "p/a: whether its"},
		{"stale read", func(h *History) {
			h.Calls[1].Begin, h.Calls[1].End = 11e9, 12e9
		}, "has revision 2 after another was answered 4"},
		{"stale read with a new header", func(h *History) { h.Calls[1].Begin, h.Calls[1].End, h.Calls[1].Revision = 11e9, 12e9, 4 }, "it should have read"},
		{"stale read on its key", func(h *History) { h.Calls[1].Begin, h.Calls[1].End, h.Calls[1].Revision = 11e9, 12e9, 4 }, "p/a: whether its"},
		{"read of what was never written", func(h *History) { h.Calls[1].KVs[0].Value = "7" }, "p/a: whether its"},
		{"read of a call that did not happen", func(h *History) { h.Calls[4].KVs[0].Value = "x" }, "p/a: whether its"},
		{"version of a read", func(h *History) { h.Calls[1].KVs[0].Version = 2 }, "p/a: whether its"},
		{"list of another revision", func(h *History) { h.Calls[8].KVs, h.Calls[8].Count = nil, 0 }, "at 5 it should have read"},
		{"list with a wrong count", func(h *History) { h.Calls[7].Count = 3 }, "at 5 there were 2 keys"},
		{"list without its rest", func(h *History) { h.Calls[7].More = false }, "at 5 there were 2 keys"},
		{"skipped event", func(h *History) { s := h.stream(1, 1); s.Responses = s.Responses[1:] }, "but 4 was not"},
		{"skipped event at the end", func(h *History) { s := h.stream(1, 1); s.Responses = s.Responses[:2] }, "was not told of 6"},
		{"skipped event between streams", func(h *History) { h.stream(1, 1).Start = 5 }, "starts with 5"},
		{"skipped revision", func(h *History) {
			s := h.stream(0, 0)
			s.Responses = append(s.Responses, Response{At: 21e9, Revision: 9, Changes: []Change{{KV: KV{"z", "z", 9, 9, 1, 0}}}})
		}, "no watch was told of revision 8"},
		{"repeated event", func(h *History) { s := h.stream(1, 0); s.Responses = append(s.Responses, s.Responses[0]) }, "2 after everything up to 3"},
		{"repeated event in the next stream", func(h *History) {
			s := h.stream(1, 1)
			s.Responses = append(h.stream(1, 0).Responses[1:], s.Responses...)
		}, "3 after everything up to 3"},
		{"repeated event in one response", func(h *History) { r := &h.stream(1, 1).Responses[0]; r.Changes = append(r.Changes, r.Changes[0]) }, "also has"},
		{"reordered events", func(h *History) { r := h.stream(1, 0).Responses; r[0], r[1] = r[1], r[0] }, "3 was told, but 2 was not"},
		{"reordered events in one response", func(h *History) { c := h.stream(0, 0).Responses[2].Changes; c[0], c[1] = c[1], c[0] }, "4 was told, but 3 was not"},
		{"divided transaction", func(h *History) {
			s := h.stream(1, 1)
			first, second := s.Responses[0], s.Responses[0]
			first.Changes, second.Changes = first.Changes[:1], second.Changes[1:]
			s.Responses = append([]Response{first, second}, s.Responses[1:]...)
		}, "lacks"},
		{"foreign event", func(h *History) {
			s := h.stream(1, 1)
			s.Responses = append(s.Responses, Response{At: 21e9, Revision: 7, Changes: []Change{{Delete: true, KV: KV{Key: "q/e", Mod: 7}}}})
		}, "also has"},
		{"event with another value", func(h *History) { h.stream(1, 0).Responses[0].Changes[0].KV.Value = "other" }, "another"},
		{"event with another version", func(h *History) { h.stream(1, 1).Responses[0].Changes[1].KV.Version = 2 }, "another"},
		{"event without what was before", func(h *History) { h.stream(1, 0).Responses[1].Changes[0].Before = nil }, "lacks"},
		{"event that is newer than its header", func(h *History) { h.stream(1, 0).Responses[1].Revision = 2 }, "the header of a response with 3 has 2"},
		{"progress ahead of an event", func(h *History) { h.stream(1, 1).Responses[1].Revision = 6 }, "progress to 6, but 6 was not told"},
		{"watch that is canceled", func(h *History) { h.stream(1, 1).Responses[1].Canceled = "why" }, "why"},
		{"refused call", func(h *History) { h.Calls[3].Refused = true }, "was refused"},
		{"list of a compacted revision", compaction(19, 5, false), ""},
		{"list of a compacted revision, at its end", compaction(16, 5, false), ""},
		{"list below a compacted revision", compaction(16, 6, false), "was answered after 6 was compacted"},
		{"list that is compacted too early", compaction(16, 5, true), "but only 5 was compacted"},
		{"list that may be compacted", compaction(17, 6, true), ""},
		{"lease that ends early", func(h *History) { h.Leases[0].Renewed = 18e9 }, "had ended at 20s"},
		{"lease that does not end", func(h *History) { h.Leases[0].Gone = false }, "has not ended"},
		{"lease that nobody was granted", func(h *History) { h.Leases = nil }, "made by nobody"},
		{"lease that ends twice", func(h *History) {
			s, key := h.stream(0, 0), KV{"q/e", "8", 8, 8, 1, 9}
			h.Calls = append(h.Calls, Call{Begin: 21e9, End: 22e9, Kind: Put, Keys: []string{"q/e"}, Value: "8", Lease: 9, Answer: Answer{Revision: 8, Succeeded: true}})
			s.Responses = append(s.Responses, Response{At: 22e9, Revision: 8, Changes: []Change{{KV: key}}}, Response{At: 23e9, Revision: 9, Changes: []Change{{Delete: true, KV: KV{Key: "q/e", Mod: 9}}}})
		}, "ended at 7 and at 9"},
		{"lease that ends without its key", func(h *History) { s := h.stream(0, 0); s.Responses = s.Responses[:len(s.Responses)-1] }, "is still there, without its lease"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := correct()
			c.fault(h)
			v := Check(h)
			all := strings.Join(v.Faults, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("found %q; want %q", all, c.want)
			}
		})
	}
}

// compaction adds one at second at to revision. list says whether the second page of the list was told of it.
func compaction(at time.Duration, revision int64, list bool) func(*History) {
	return func(h *History) {
		begin := at * time.Second
		h.Calls = append(h.Calls, Call{Client: 2, Begin: begin, End: begin + 1, Kind: Compact, At: revision, Answer: Answer{Revision: 6, Succeeded: true}})
		if list {
			h.Calls[8].Error, h.Calls[8].Compacted = "compacted", true
			h.Calls[8].Answer = Answer{}
		}
	}
}

// TestCheckSaves wants a history that has faults in a file, and a drawing of the key that is to blame.
func TestCheckSaves(t *testing.T) {
	h := correct()
	h.Calls[1].KVs[0].Version = 2
	dir := t.TempDir()
	paths, err := Check(h).Save(dir)
	if err != nil || len(paths) != 2 || paths[1] != filepath.Join(dir, "p_a.html") {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "p/a") && !strings.Contains(string(text), "mod 2") {
			t.Errorf("%s: %v, %s", path, err, text)
		}
	}
}
