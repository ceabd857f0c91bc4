package past

import (
	"encoding/json"
	"fmt"
)

// itemKeys are the fields that identify the items of a list, in the order in which they are tried.
var itemKeys = []string{"name", "uid", "key", "type", "containerPort", "port", "mountPath", "devicePath", "ip", "topologyKey", "path", "host"}

// followItems says for each new item of a list which old item it was, -1 for none.
//
// Items are followed by the merge keys of their list, where a manager of the object tells them. Else,
// items that are all maps with one of itemKeys, whose value no two of them share, are followed by it.
// Other items are followed by their content: an item that stays as it is in the longest sequence that is
// common to both lists is the same item. What is between two such items has changed, in order.
func followItems(old, new []any, at place) []int {
	if from, known := at.lists.Follow(old, new); known {
		return from
	}
	for _, key := range itemKeys {
		before, ok := byKey(old, key)
		if !ok {
			continue
		}
		if after, ok := byKey(new, key); ok {
			return follow(before, after)
		}
	}
	return followContent(old, new)
}

// byKey returns the values of a key of all items, if each has one of its own.
func byKey(items []any, key string) (values []string, ok bool) {
	seen := map[string]bool{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		value := fields[key]
		switch value.(type) {
		case string, int64, float64, bool:
		default:
			return nil, false
		}
		text := fmt.Sprint(value)
		if seen[text] {
			return nil, false
		}
		seen[text] = true
		values = append(values, text)
	}
	return values, len(items) > 0
}

func follow(before, after []string) []int {
	place := make(map[string]int, len(before))
	for i, value := range before {
		place[value] = i
	}
	out := make([]int, len(after))
	for i, value := range after {
		out[i] = -1
		if from, ok := place[value]; ok {
			out[i] = from
		}
	}
	return out
}

func followContent(old, new []any) []int {
	before, after := encodedAll(old), encodedAll(new)
	out := make([]int, len(new))
	for i := range out {
		out[i] = -1
	}
	a, b := 0, 0
	pair := func(endA, endB int) { // the items between two that stay
		for ; a < endA && b < endB; a, b = a+1, b+1 {
			out[b] = a
		}
		a, b = endA, endB
	}
	for _, same := range commonItems(before, after) {
		pair(same[0], same[1])
		out[same[1]] = same[0]
		a, b = same[0]+1, same[1]+1
	}
	pair(len(old), len(new))
	return out
}

func encodedAll(items []any) []string {
	out := make([]string, len(items))
	for i, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			panic(err) // not from JSON
		}
		out[i] = string(text)
	}
	return out
}

// maxCompared bounds the work for a list: beyond it only the beginning and the end that are the same
// are found.
const maxCompared = 1 << 20

// commonItems returns the places in both lists of their longest common subsequence.
func commonItems(a, b []string) (same [][2]int) {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		same = append(same, [2]int{start, start})
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	if (endA-start)*(endB-start) <= maxCompared {
		for _, p := range longest(a[start:endA], b[start:endB]) {
			same = append(same, [2]int{p[0] + start, p[1] + start})
		}
	}
	for ; endA < len(a); endA, endB = endA+1, endB+1 {
		same = append(same, [2]int{endA, endB})
	}
	return same
}

// longest is commonItems by a table of all pairs.
func longest(a, b []string) (same [][2]int) {
	length := make([][]int, len(a)+1) // of what is common to a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			length[i][j] = max(length[i+1][j], length[i][j+1])
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			same = append(same, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return same
}
