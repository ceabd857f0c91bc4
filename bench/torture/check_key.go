package torture

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func within(key, prefix string) bool { return strings.HasPrefix(key, prefix) }

// state is that of one key in the model. Revision is 0 if it is not there.
type state struct {
	Revision int64
	Content
	last int64 // revision of the newest change
}

// part is a call as far as one key is concerned.
type part struct {
	call *Call
	key  string
	made Row   // what a write has made, as it was answered or as the log has it
	seen *Item // what a read has found; nil: nothing
	at   int64 // revision of the list that found it; 0: a get
}

// keyModel says what calls may do to a key. It knows nothing of watches.
var keyModel = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(is, input, _ any) (bool, any) {
		o, p := is.(state), input.(*part)
		return o.step(p)
	},
	DescribeOperation: func(input, _ any) string { return input.(*part).String() },
	DescribeState: func(is any) string {
		o := is.(state)
		if o.Revision == 0 {
			return "absent"
		}
		return fmt.Sprintf("%s at %d", o.Content, o.Revision)
	},
}

func (o state) step(p *part) (bool, any) {
	c, there := p.call, o.Revision != 0
	switch {
	case !c.Writes():
		return o.shows(p), o
	case c.Status == 404:
		return !there, o
	case c.Status == 409 && c.Kind == Create:
		return there, o
	case c.Status == 409:
		return !there || o.Revision != c.Expect, o
	}
	matches := c.Expect == 0 || c.Expect == o.Revision
	next := state{p.made.Revision, p.made.Content, p.made.Revision}
	newer := p.made.Revision > o.last
	switch c.Kind {
	case Create:
		return !there && newer, next
	case Update:
		return there && matches && newer, next
	case Patch:
		return there && newer && next.A == o.A, next
	case Apply:
		return newer && next.V == o.V, next
	default:
		return there && matches && newer, state{last: p.made.Revision}
	}
}

// shows tells whether a read may find the object as p has found it.
func (o state) shows(p *part) bool {
	if p.at != 0 && o.last > p.at {
		return false
	}
	if p.seen == nil {
		return o.Revision == 0
	}
	return o.Revision == p.seen.Revision && o.Content == p.seen.Content
}

func (p *part) String() string { return p.call.String() }

// checkKeys wants the calls on each key to be linearizable.
func (c *checker) checkKeys(patience time.Duration) {
	for key, operations := range c.parts() {
		if c.full() {
			return
		}
		if result := porcupine.CheckOperationsTimeout(keyModel, operations, patience); result == porcupine.Illegal {
			c.add(Broken{Guarantee: Linearizable, Key: key}, "%s: there is no order in which its %d calls can have happened", key, len(operations))
		}
	}
}

// parts returns the calls on each key. Writes without an answer may have happened until the end if the
// log has them; else they did not.
func (c *checker) parts() map[string][]porcupine.Operation {
	all := map[string][]porcupine.Operation{}
	add := func(key string, p *part, end time.Duration) {
		all[key] = append(all[key], porcupine.Operation{ClientId: p.call.Client, Input: p, Call: int64(p.call.Begin), Output: nil, Return: int64(end)})
	}
	for _, call := range c.h.Calls {
		switch {
		case call.Writes():
			if p, end, counts := c.writePart(call); counts {
				add(call.Key, p, end)
			}
		case call.Read != Newest || !call.OK() && call.Status != 404:
		case call.Kind == Get:
			p := &part{call: call, key: call.Key}
			if call.OK() {
				p.seen = &call.Items[0]
			}
			add(call.Key, p, call.End)
		default:
			c.listParts(call, add)
		}
	}
	return all
}

func (c *checker) writePart(call *Call) (p *part, end time.Duration, counts bool) {
	p = &part{call: call, key: call.Key}
	rows := c.o.by[call.ID]
	if len(rows) > 0 {
		p.made = rows[0]
	}
	switch {
	case call.OK():
		if len(call.Items) > 0 {
			p.made = Row{Item: call.Items[0]}
		}
		return p, call.End, p.made.Revision != 0
	case call.Unknown():
		return p, math.MaxInt64, len(rows) > 0
	}
	return p, call.End, call.Status == 404 || call.Status == 409 && (call.Kind == Create || call.Expect != 0)
}

// listParts makes a list a read of each key that it covers.
func (c *checker) listParts(list *Call, add func(string, *part, time.Duration)) {
	if list.Partly {
		return
	}
	end := list.End
	if list.Kind == Pages {
		end = list.Settled
	}
	seen := map[string]*Item{}
	for i := range list.Items {
		seen[list.Items[i].Key] = &list.Items[i]
	}
	for _, key := range c.o.keys {
		if within(key, list.Key) {
			add(key, &part{call: list, key: key, seen: seen[key], at: list.Revision}, end)
		}
	}
}
