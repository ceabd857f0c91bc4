package etcdtest

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// key is the state of one key in the model: what a get returns, and the newest revision so far.
type key struct {
	KV
	last int64
}

// expiry is the kind of call for the end of a key's lease, at the Revision of its Answer.
const expiry = "expiry"

// keyModel defines what calls do to a key. It does not know watches.
var keyModel = porcupine.Model{
	Init: func() any { return key{} },
	Step: func(state, input, output any) (bool, any) {
		k, c, a := state.(key), input.(*keyCall), output.(Answer)
		return k.step(c, a)
	},
	DescribeOperation: func(input, output any) string { return describeCall(input.(*keyCall), output.(Answer)) },
	DescribeState: func(state any) string {
		k := state.(key)
		return fmt.Sprintf("%q mod %d version %d", k.Value, k.Mod, k.Version)
	},
}

// keyCall is the part of a call that concerns one key.
type keyCall struct {
	*Call
	key string
}

func (k key) step(c *keyCall, a Answer) (bool, any) {
	holds := !c.Compare || c.key != c.Keys[0] || k.Mod == c.Expect
	switch {
	case c.Kind == expiry || c.Kind == Delete && a.Succeeded:
		return k.Mod != 0 && holds && a.Revision > k.last, key{last: a.Revision}
	case c.Kind == Put && a.Succeeded:
		next := KV{Key: c.key, Value: c.Value, Create: k.Create, Mod: a.Revision, Version: k.Version + 1, Lease: c.Lease}
		if next.Create == 0 {
			next.Create = a.Revision
		}
		return holds && a.Revision > k.last, key{next, a.Revision}
	}
	read := KV{}
	if len(a.KVs) > 0 {
		read = a.KVs[0]
	}
	return read == k.KV && a.Revision >= k.last && (c.Kind == Get || !holds), k
}

func describeCall(c *keyCall, a Answer) string {
	text := c.Kind
	if c.Kind == Put {
		text += fmt.Sprintf(" %q", c.Value)
	}
	if c.Compare {
		text += fmt.Sprintf(" if mod is %d", c.Expect)
	}
	switch {
	case c.Error != "":
		text += fmt.Sprintf(" (%s)", c.Error)
	case (c.Kind == Get || !a.Succeeded) && len(a.KVs) > 0:
		text += fmt.Sprintf(" finds %q mod %d version %d", a.KVs[0].Value, a.KVs[0].Mod, a.KVs[0].Version)
	case c.Kind == Get || !a.Succeeded && c.Kind != expiry:
		text += " finds nothing"
	}
	return fmt.Sprintf("%s: %d", text, a.Revision)
}

// keyHistories returns the operations on each key. A call without an answer that happened may have happened
// at any time until the end. Calls that did not happen are left out.
func keyHistories(h *History, o *order, owner map[int64]*Call) map[string][]porcupine.Operation {
	all := map[string][]porcupine.Operation{}
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind == List || c.Kind == Compact || c.Error != "" && c.Revision == 0 {
			continue
		}
		end := c.End
		if c.Error != "" {
			end = math.MaxInt64
		}
		concerned := c.Keys
		if !c.Succeeded {
			concerned = c.Keys[:1]
		}
		for _, name := range concerned {
			all[name] = append(all[name], porcupine.Operation{ClientId: c.Client, Input: &keyCall{c, name}, Call: int64(c.Begin), Output: c.Answer, Return: int64(end)})
		}
	}
	for i, r := range o.revisions {
		number := int64(i + firstWrite)
		if owner[number] != nil {
			continue
		}
		for _, c := range r.changes {
			input := &keyCall{&Call{Kind: expiry}, c.KV.Key}
			all[c.KV.Key] = append(all[c.KV.Key], porcupine.Operation{ClientId: expiryClient, Input: input, Output: Answer{Revision: number}, Return: math.MaxInt64})
		}
	}
	return all
}

const expiryClient = 1000 // above those of the load

// checkKeys checks that the calls on each key are linearizable. It draws those that are not.
func checkKeys(h *History, o *order, owner map[int64]*Call, patience time.Duration) (drawings map[string]drawing) {
	drawings = map[string]drawing{}
	for name, operations := range keyHistories(h, o, owner) {
		result, info := porcupine.CheckOperationsVerbose(keyModel, operations, patience)
		if result != porcupine.Ok {
			o.fault("%s: whether its %d calls are linearizable: %s", name, len(operations), result)
			drawings[name] = drawing{info}
		}
	}
	return drawings
}

// drawing is the calls on a key with the longest order that porcupine found.
type drawing struct{ info porcupine.LinearizationInfo }

func (d drawing) save(dir, name string) (string, error) {
	path := filepath.Join(dir, strings.Map(fileRune, name)+".html")
	return path, porcupine.VisualizePath(keyModel, d.info, path)
}

func fileRune(r rune) rune {
	if slices.Contains([]rune("/\\:"), r) {
		return '_'
	}
	return r
}
