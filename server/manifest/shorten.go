package manifest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// rounds bounds how often fields are added. trials bounds how many fields are tried to leave
// out, and trialBytes how much JSON is read for that, but fewTrials are always made. A field
// that was not tried stays: the result is correct, but longer.
const (
	rounds     = 20
	trials     = 400
	trialBytes = 4 << 20
	fewTrials  = 20
)

// shorten returns a part of full, which has all fields of an object: the fields that its author
// wrote, and those without which the current defaults would make another object.
func (c conversion) shorten(full, author map[string]any) (map[string]any, error) {
	short := common(full, author).(map[string]any)
	short["apiVersion"], short["kind"] = full["apiVersion"], full["kind"]
	b, err := json.Marshal(full)
	if err != nil {
		return nil, err
	}
	s := shortening{conversion: c, full: full, needed: map[string]bool{}, trials: min(trials, max(fewTrials, trialBytes/len(b)))}
	if s.whole, err = c.hub(full); err != nil {
		return nil, err
	}
	for round := range rounds {
		made, err := c.made(short)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(made, full) {
			s.prune(short, short, author, "")
			s.keepZeros(short, short, author)
			return short, nil
		}
		s.first = round == 0
		s.add(short, made, full, "")
	}
	return full, nil // defaults that depend on each other; it has never been seen
}

type shortening struct {
	conversion
	full   map[string]any
	whole  runtime.Object // full, internal
	trials int

	// needed are the places of values that defaults do not give, as was seen when none of
	// them was there, and of what they are in.
	needed map[string]bool
	first  bool // round of adding
}

// enough tells whether fields make the whole object.
func (s *shortening) enough(fields map[string]any) bool {
	hub, err := s.hub(fields)
	return err == nil && equality.Semantic.DeepEqual(hub, s.whole)
}

// common returns the fields of full whose places are in author too, whatever their values.
func common(full, author any) any {
	switch f := full.(type) {
	case map[string]any:
		a, ok := author.(map[string]any)
		if !ok {
			return full
		}
		both := map[string]any{}
		for key, v := range f {
			if has, ok := a[key]; ok {
				both[key] = common(v, has)
			}
		}
		return both
	case []any:
		a, ok := author.([]any)
		if !ok || len(a) != len(f) {
			return runtime.DeepCopyJSONValue(full)
		}
		both := make([]any, len(f))
		for i := range f {
			both[i] = common(f[i], a[i])
		}
		return both
	}
	return full
}

// add adds to short the fields that made lacks or has with another value than full. The
// arguments are the parts at one place of the object.
func (s *shortening) add(short, made, full map[string]any, place string) {
	for key, want := range full {
		has, ok := made[key]
		if ok && reflect.DeepEqual(has, want) {
			continue
		}
		mine, there := short[key]
		if !there && isMap(has) && isMap(want) {
			mine, there = map[string]any{}, true
		}
		at := place + "/" + key
		if !there {
			s.need(at, want)
			short[key] = runtime.DeepCopyJSONValue(want)
			continue
		}
		short[key] = s.mended(mine, has, want, at)
	}
}

func (s *shortening) mended(short, made, full any, place string) any {
	switch want := full.(type) {
	case map[string]any:
		mine, ok1 := short.(map[string]any)
		has, ok2 := made.(map[string]any)
		if ok1 && ok2 {
			s.add(mine, has, want, place)
			return mine
		}
	case []any:
		mine, ok1 := short.([]any)
		has, ok2 := made.([]any)
		if ok1 && ok2 && len(mine) == len(want) && len(has) == len(want) {
			for i := range want {
				if !reflect.DeepEqual(has[i], want[i]) {
					mine[i] = s.mended(mine[i], has[i], want[i], place+"/"+strconv.Itoa(i))
				}
			}
			return mine
		}
	}
	return runtime.DeepCopyJSONValue(full)
}

// need notes a value, unless it has parts, some of which defaults may give, or others were
// added before, of which it may follow.
func (s *shortening) need(place string, value any) {
	if _, isList := value.([]any); !s.first || isList || isMap(value) {
		return
	}
	for ; place != ""; place = place[:strings.LastIndexByte(place, '/')] {
		s.needed[place] = true
	}
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// prune removes fields that the author did not write and that make no difference. at is a part
// of short, author the same part of the original.
func (s *shortening) prune(short map[string]any, at, author any, place string) {
	switch part := at.(type) {
	case map[string]any:
		a, _ := author.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(part)) {
			value, inside := part[key], place+"/"+key
			if _, wrote := a[key]; !wrote && !s.needed[inside] && s.trials > 0 {
				s.trials--
				delete(part, key)
				if s.enough(short) {
					continue
				}
				part[key] = value
			}
			s.prune(short, value, a[key], inside)
		}
	case []any:
		a, _ := author.([]any)
		for i, value := range part {
			var wrote any
			if len(a) == len(part) {
				wrote = a[i]
			}
			s.prune(short, value, wrote, place+"/"+strconv.Itoa(i))
		}
	}
}

// keepZeros puts back what says the same as nothing, as in replicas: 0 or hostNetwork: false,
// where the new version has it too.
func (s *shortening) keepZeros(short map[string]any, at, author any) {
	switch part := at.(type) {
	case map[string]any:
		a, _ := author.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(a)) {
			value, there := part[key]
			if there {
				s.keepZeros(short, value, a[key])
			} else if isZero(a[key]) && s.trials > 0 {
				s.trials--
				part[key] = a[key]
				if !s.known(short) || !s.enough(short) {
					delete(part, key)
				}
			}
		}
	case []any:
		if a, _ := author.([]any); len(a) == len(part) {
			for i := range part {
				s.keepZeros(short, part[i], a[i])
			}
		}
	}
}

// known tells whether the new version has all of the fields.
func (s *shortening) known(fields map[string]any) bool {
	obj, err := s.scheme.New(s.to)
	if err != nil {
		return false
	}
	unknown, err := decode(fields, obj)
	return err == nil && unknown == ""
}

func isZero(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case int64:
		return x == 0
	case float64:
		return x == 0
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}
