package fieldsets

import (
	"maps"
	"reflect"
	"slices"
)

// Revert returns the object without a change that was made some time ago: fields that the change touched get
// their old values back, whatever their present values are, and all others keep their present ones. What the
// change added is removed, together with what others have since put into it. What the change removed is
// restored. Items of lists are matched as in Compare, wherever they are now. Nothing is restored in a map or
// an item that has been removed since.
//
// The result shares its parts with the objects.
func Revert(current, before, after map[string]any, lists *Lists) map[string]any {
	return revertMap(current, before, after, lists)
}

// state is a value, or its absence.
type state struct {
	value any
	there bool
}

func stateOf(m map[string]any, key string) state {
	value, there := m[key]
	return state{value, there}
}

// as returns a map or a list; an absent one is empty.
func as[T map[string]any | []any](s state) (value T, ok bool) {
	if !s.there {
		return value, true
	}
	value, ok = s.value.(T)
	return value, ok
}

// revert is Revert for one value.
func revert(current, before, after state, at *Lists) state {
	if before.there || after.there {
		if out, done := revertMaps(current, before, after, at); done {
			return out
		}
		if out, done := revertLists(current, before, after, at); done {
			return out
		}
	}
	if before.there == after.there && reflect.DeepEqual(before.value, after.value) {
		return current
	}
	return before
}

func revertMaps(current, before, after state, at *Lists) (out state, done bool) {
	b, ok := as[map[string]any](before)
	a, alsoOK := as[map[string]any](after)
	if !ok || !alsoOK {
		return out, false
	}
	c, isMap := current.value.(map[string]any)
	if !isMap {
		return current, before.there && after.there // the map or list to restore the fields in is gone
	}
	reverted := revertMap(c, b, a, at)
	if len(reverted) == 0 && !before.there {
		return state{}, true
	}
	return state{reverted, true}, true
}

func revertMap(current, before, after map[string]any, at *Lists) map[string]any {
	out := maps.Clone(current)
	for _, key := range unionOf(before, after) {
		s := revert(stateOf(current, key), stateOf(before, key), stateOf(after, key), at.Field(key))
		if s.there {
			out[key] = s.value
		} else {
			delete(out, key)
		}
	}
	return out
}

func revertLists(current, before, after state, at *Lists) (out state, done bool) {
	b, ok := as[[]any](before)
	a, alsoOK := as[[]any](after)
	if !ok || !alsoOK || at.Keys() == nil {
		return out, false
	}
	c, isList := current.value.([]any)
	if !isList {
		return current, before.there && after.there
	}
	l := &listRevert{current: c, before: b, after: a, at: at}
	if !l.nameItems() {
		return out, false
	}
	reverted := l.items()
	if len(reverted) == 0 && !before.there {
		return state{}, true
	}
	return state{reverted, true}, true
}

// listRevert reverts the items of one list.
type listRevert struct {
	current, before, after                []any
	at                                    *Lists
	currentNames, beforeNames, afterNames []string
	inBefore, inAfter                     map[string]int
}

// nameItems returns false if the items cannot be distinguished.
func (l *listRevert) nameItems() bool {
	keys, ok := l.at.Keys(), true
	for _, of := range []struct {
		items []any
		names *[]string
	}{{l.current, &l.currentNames}, {l.before, &l.beforeNames}, {l.after, &l.afterNames}} {
		if ok {
			*of.names, ok = keys.names(of.items)
		}
	}
	l.inBefore, l.inAfter = placesOf(l.beforeNames), placesOf(l.afterNames)
	return ok
}

// item is an item of the result.
type item struct {
	name  string
	value any
}

func (l *listRevert) items() []any {
	var left []item
	there := map[string]bool{}
	for i, name := range l.currentNames {
		before, after := itemOf(l.before, l.inBefore, name), itemOf(l.after, l.inAfter, name)
		if after.there && !before.there {
			continue // the change added the item, so all of it is removed
		}
		s := revert(state{l.current[i], true}, before, after, l.at.Items())
		left, there[name] = append(left, item{name, s.value}), true
	}
	l.putInOrder(left)
	return l.putBack(left, there)
}

func itemOf(items []any, places map[string]int, name string) state {
	if i, ok := places[name]; ok {
		return state{items[i], true}
	}
	return state{}
}

// putInOrder gives the items that existed before and after the change the order that they had before, if the
// change altered that order. Other items keep their places.
func (l *listRevert) putInOrder(left []item) {
	if !slices.Contains(moved(followNames(l.beforeNames, l.afterNames)), true) {
		return
	}
	values, places := map[string]item{}, []int(nil)
	for i, it := range left {
		_, b := l.inBefore[it.name]
		if _, a := l.inAfter[it.name]; a && b {
			values[it.name], places = it, append(places, i)
		}
	}
	for _, name := range l.beforeNames {
		if it, ok := values[name]; ok {
			left[places[0]], places = it, places[1:]
		}
	}
}

// putBack adds the items that the change removed, each behind its former predecessor.
func (l *listRevert) putBack(left []item, there map[string]bool) []any {
	var first []any // items without a predecessor
	behind, last := map[string][]any{}, ""
	for i, name := range l.beforeNames {
		_, stayed := l.inAfter[name]
		switch {
		case there[name]:
			last = name
		case stayed: // somebody has removed it since
		case last == "":
			first = append(first, l.before[i])
		default:
			behind[last] = append(behind[last], l.before[i])
		}
	}
	out := make([]any, 0, len(left)+len(first))
	for _, it := range left {
		if _, had := l.inBefore[it.name]; had && first != nil {
			out, first = append(out, first...), nil
		}
		out = append(append(out, it.value), behind[it.name]...)
	}
	return append(out, first...)
}
