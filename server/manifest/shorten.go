package manifest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// rounds bounds how often fields are added, trials how many are tried without, and trialBytes
// how much JSON is read for that, though fewTrials are always made. What is not tried stays,
// which is only longer.
const (
	rounds     = 20
	trials     = 400
	trialBytes = 4 << 20
	fewTrials  = 20
)

// shorten returns of full, all fields of an object, those that its author wrote and those
// without which today's defaults would make another object.
func (c conversion) shorten(full, author map[string]any) (map[string]any, error) {
	short := common(full, author).(map[string]any)
	short["apiVersion"], short["kind"] = full["apiVersion"], full["kind"]
	b, err := json.Marshal(full)
	if err != nil {
		return nil, err
	}
	s := shortening{c, full, min(trials, max(fewTrials, trialBytes/len(b)))}
	for range rounds {
		made, err := c.made(short)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(made, full) {
			break
		}
		s.add(short, made, full)
	}
	if !s.enough(short) {
		return full, nil // defaults that depend on each other; it has never been seen
	}
	s.prune(short, short, author)
	s.keepZeros(short, short, author)
	return short, nil
}

type shortening struct {
	conversion
	full   map[string]any
	trials int
}

// enough tells whether fields make the whole object.
func (s *shortening) enough(fields map[string]any) bool {
	made, err := s.made(fields)
	return err == nil && reflect.DeepEqual(made, s.full)
}

// common returns what of full is also in author, by place and not by value.
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

// add puts into short what made of it lacks, or has otherwise than full.
func (s *shortening) add(short, made, full map[string]any) {
	for key, want := range full {
		has, ok := made[key]
		if ok && reflect.DeepEqual(has, want) {
			continue
		}
		mine, there := short[key]
		if !there {
			short[key] = runtime.DeepCopyJSONValue(want)
			continue
		}
		short[key] = s.mended(mine, has, want)
	}
}

func (s *shortening) mended(short, made, full any) any {
	switch want := full.(type) {
	case map[string]any:
		mine, ok1 := short.(map[string]any)
		has, ok2 := made.(map[string]any)
		if ok1 && ok2 {
			s.add(mine, has, want)
			return mine
		}
	case []any:
		mine, ok1 := short.([]any)
		has, ok2 := made.([]any)
		if ok1 && ok2 && len(mine) == len(want) && len(has) == len(want) {
			for i := range want {
				if !reflect.DeepEqual(has[i], want[i]) {
					mine[i] = s.mended(mine[i], has[i], want[i])
				}
			}
			return mine
		}
	}
	return runtime.DeepCopyJSONValue(full)
}

// prune takes out what its author did not write and what makes no difference. at is a part
// of short, author the same part of what was written.
func (s *shortening) prune(short map[string]any, at, author any) {
	switch part := at.(type) {
	case map[string]any:
		a, _ := author.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(part)) {
			value := part[key]
			if _, wrote := a[key]; !wrote && s.trials > 0 {
				s.trials--
				delete(part, key)
				if s.enough(short) {
					continue
				}
				part[key] = value
			}
			s.prune(short, value, a[key])
		}
	case []any:
		a, _ := author.([]any)
		for i, value := range part {
			var wrote any
			if len(a) == len(part) {
				wrote = a[i]
			}
			s.prune(short, value, wrote)
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

// known tells whether the new version has all fields.
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
