package past

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// replayed is an object that remembers with each value the change that set it. Unlike blame it is told
// what each change does, and compares nothing.
type replayed struct {
	owner  int
	text   string // of a plain value
	fields map[string]*replayed
	items  []*replayed
	isMap  bool
	isList bool
}

func (r *replayed) plain() any {
	switch {
	case r.isMap:
		out := map[string]any{}
		for key, field := range r.fields {
			out[key] = field.plain()
		}
		return out
	case r.isList:
		out := []any{}
		for _, item := range r.items {
			out = append(out, item.plain())
		}
		return out
	}
	return r.text
}

// replayedLine is a line of YAML and the change that it is from.
type replayedLine struct {
	text  string
	owner int
}

// lines writes the fields of a map as YAML.
func (r *replayed) lines(indent string) (out []replayedLine) {
	for _, key := range slices.Sorted(maps.Keys(r.fields)) {
		field := r.fields[key]
		switch {
		case field.isMap && len(field.fields) > 0:
			out = append(append(out, replayedLine{indent + key + ":", field.owner}), field.lines(indent+"  ")...)
		case field.isMap:
			out = append(out, replayedLine{indent + key + ": {}", field.owner})
		case field.isList && len(field.items) > 0:
			out = append(append(out, replayedLine{indent + key + ":", field.owner}), field.itemLines(indent)...)
		case field.isList:
			out = append(out, replayedLine{indent + key + ": []", field.owner})
		default:
			out = append(out, replayedLine{indent + key + ": " + field.text, field.owner})
		}
	}
	return out
}

func (r *replayed) itemLines(indent string) (out []replayedLine) {
	for _, item := range r.items {
		if !item.isMap {
			out = append(out, replayedLine{indent + "- " + item.text, item.owner})
			continue
		}
		lines := item.lines(indent + "  ")
		lines[0].text = indent + "- " + lines[0].text[len(indent)+2:]
		out = append(out, lines...)
	}
	return out
}

// player changes an object at random, one thing in each change.
type player struct {
	*rand.Rand
	change int
	names  int // words that were used
}

func (p *player) word() string {
	p.names++
	return fmt.Sprintf("w%d", p.names)
}

func (p *player) value() *replayed { return &replayed{owner: p.change, text: p.word()} }

func (p *player) mapOf(keys ...string) *replayed {
	out := &replayed{owner: p.change, isMap: true, fields: map[string]*replayed{}}
	for _, key := range keys {
		out.fields[key] = p.value()
	}
	return out
}

func (p *player) emptyList() *replayed { return &replayed{owner: p.change, isList: true} }

func (p *player) begin() *replayed {
	o := p.mapOf("apiVersion", "kind")
	o.fields["metadata"] = p.mapOf("name", "namespace")
	o.fields["spec"] = p.mapOf("a", "b", "c")
	o.fields["spec"].fields["labels"] = p.mapOf("x")
	o.fields["spec"].fields["containers"] = p.emptyList()
	o.fields["spec"].fields["args"] = p.emptyList()
	return o
}

// step changes one thing.
func (p *player) step(o *replayed) {
	p.change++
	spec := o.fields["spec"]
	switch p.IntN(4) {
	case 0:
		p.changeMap(spec, []string{"a", "b", "c", "d"})
	case 1:
		p.changeMap(spec.fields["labels"], []string{"x", "z"})
	case 2:
		p.changeNamed(spec.fields["containers"])
	case 3:
		p.changeWords(spec.fields["args"])
	}
}

// changeMap sets or removes a field. A map that becomes empty, or is no longer, is another value.
func (p *player) changeMap(m *replayed, keys []string) {
	key, was := keys[p.IntN(len(keys))], len(m.fields) > 0
	if _, there := m.fields[key]; there && p.IntN(2) == 0 {
		delete(m.fields, key)
	} else {
		m.fields[key] = p.value()
	}
	if was != (len(m.fields) > 0) {
		m.owner = p.change
	}
}

// changeNamed adds, removes, moves or changes an item that has a name.
func (p *player) changeNamed(list *replayed) {
	was := len(list.items) > 0
	switch n := len(list.items); {
	case n == 0 || p.IntN(4) == 0:
		list.items = slices.Insert(list.items, p.IntN(n+1), p.mapOf("image", "name", "port"))
	case p.IntN(4) == 0:
		i := p.IntN(n)
		list.items = slices.Delete(list.items, i, i+1)
	case p.IntN(3) == 0:
		p.Shuffle(n, func(i, j int) { list.items[i], list.items[j] = list.items[j], list.items[i] })
	default:
		list.items[p.IntN(n)].fields["image"] = p.value()
	}
	if was != (len(list.items) > 0) {
		list.owner = p.change
	}
}

// changeWords adds, removes or changes a word.
func (p *player) changeWords(list *replayed) {
	was := len(list.items) > 0
	switch n := len(list.items); {
	case n == 0 || p.IntN(3) == 0:
		list.items = slices.Insert(list.items, p.IntN(n+1), p.value())
	case p.IntN(2) == 0:
		i := p.IntN(n)
		list.items = slices.Delete(list.items, i, i+1)
	default:
		list.items[p.IntN(n)] = p.value()
	}
	if was != (len(list.items) > 0) {
		list.owner = p.change
	}
}

// TestBlameModel compares blame after every change of random histories with a replay.
func TestBlameModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		p := &player{Rand: rand.New(rand.NewPCG(seed, 1))}
		object := p.begin()
		var all []*historyv1.Version
		for len(all) < 60 {
			text, err := json.Marshal(object.plain())
			if err != nil {
				t.Fatal(err)
			}
			v := &historyv1.Version{Description: historyv1.Description{Revision: int64(p.change + 1), Action: historyv1.Changed}}
			if v.Data.Raw = text; len(all) == 0 {
				v.Action = historyv1.Created
			}
			all = append(all, v)
			wantBlame(t, seed, all, object.lines(""))
			p.step(object)
		}
		if t.Failed() {
			return
		}
	}
}

func wantBlame(t *testing.T, seed uint64, all []*historyv1.Version, want []replayedLine) {
	t.Helper()
	lines, err := blame(all, View{})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(want) {
		t.Errorf("seed %d, %d versions: %d lines, want %d", seed, len(all), len(lines), len(want))
		return
	}
	for i, line := range lines {
		if line.Text != want[i].text || line.Change != all[want[i].owner] || line.Older {
			t.Errorf("seed %d, %d versions, line %d: %q of %d; want %q of %d",
				seed, len(all), i+1, line.Text, line.Change.Revision-1, want[i].text, want[i].owner)
		}
	}
}
