// Package nearest finds the known word that a mistyped one was meant to be.
package nearest

import "strings"

// Of returns the word of known that typed was meant to be, or nothing if none is near: the
// more letters a word has, the more of them may be wrong, but never more than two. Else it
// may be the beginning of one word. Upper and lower case are the same, and so are - and _.
func Of(typed string, known []string) string {
	typed = fold(typed)
	if found := Within(min(2, (len(typed)+1)/3), typed, known); found != "" || len(typed) < 3 {
		return found
	}
	return begun(typed, known)
}

// Within returns the word of known that is nearest to typed if at most that many letters of
// typed are wrong, else nothing.
func Within(wrong int, typed string, known []string) (found string) {
	typed = fold(typed)
	for _, word := range known {
		if d := distance(typed, fold(word)); d <= wrong {
			wrong, found = d-1, word
		}
	}
	return found
}

// begun returns the only word that begins with typed.
func begun(typed string, known []string) (found string) {
	for _, word := range known {
		if !strings.HasPrefix(fold(word), typed) {
			continue
		}
		if found != "" {
			return ""
		}
		found = word
	}
	return found
}

func fold(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }

// distance counts the letters to insert, remove or replace, and the neighbours to swap, to
// get from a to b.
func distance(a, b string) int {
	var before []int // the row of a[:i-1]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
