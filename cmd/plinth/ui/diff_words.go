package ui

import (
	"strings"
	"unicode"
)

// linePair is a line that has taken the place of another, by their places; -1: none.
type linePair struct{ old, new int }

const (
	// alike is how much of two lines is the same if one is shown as a change of the other.
	alike = 0.45
	// mostPairs and mostWords bound the work: beyond it lines are paired in order, and of a line only its beginning and its
	// end are compared.
	mostPairs, mostWords = 2500, 300
	// mostSteps bounds the work on a whole comparison.
	mostSteps = 20_000_000
)

// stepsOf is how much work it is at most to compare the words of two lines.
func stepsOf(a, b string) int { return min(len(a), mostWords) * min(len(b), mostWords) }

// pairsOf says which of the added lines is a change of which that were removed, in order. It takes its steps from left.
func pairsOf(removed, added []string, left *int) []linePair {
	if len(removed)*len(added) > mostPairs {
		return pairInOrder(len(removed), len(added))
	}
	steps := 0
	for _, a := range removed {
		for _, b := range added {
			steps += stepsOf(a, b)
		}
	}
	if steps > *left {
		return pairInOrder(len(removed), len(added))
	}
	*left -= steps
	// best[i][j] is how much is alike of removed[i:] and added[j:].
	likeness, best := gridOf(len(removed), len(added)), gridOf(len(removed), len(added))
	for i := len(removed) - 1; i >= 0; i-- {
		for j := len(added) - 1; j >= 0; j-- {
			likeness[i][j] = likenessOf(removed[i], added[j])
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if likeness[i][j] >= alike {
				best[i][j] = max(best[i][j], best[i+1][j+1]+likeness[i][j])
			}
		}
	}
	var all []linePair
	i, j := 0, 0
	for i < len(removed) && j < len(added) {
		switch {
		case likeness[i][j] >= alike && best[i][j] == best[i+1][j+1]+likeness[i][j]:
			all = append(all, linePair{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			all = append(all, linePair{i, -1})
			i++
		default:
			all = append(all, linePair{-1, j})
			j++
		}
	}
	for ; i < len(removed); i++ {
		all = append(all, linePair{i, -1})
	}
	for ; j < len(added); j++ {
		all = append(all, linePair{-1, j})
	}
	return all
}

func gridOf(rows, columns int) [][]float64 {
	all := make([][]float64, rows+1)
	for i := range all {
		all[i] = make([]float64, columns+1)
	}
	return all
}

func pairInOrder(removed, added int) (all []linePair) {
	for i := range max(removed, added) {
		p := linePair{i, i}
		if i >= removed {
			p.old = -1
		}
		if i >= added {
			p.new = -1
		}
		all = append(all, p)
	}
	return all
}

// likenessOf is how much of two lines is the same, from 0 to 1. The same key at the same depth is half of it.
func likenessOf(a, b string) float64 {
	keyA, valueA, okA := strings.Cut(a, ":")
	keyB, valueB, okB := strings.Cut(b, ":")
	if okA && okB && keyA == keyB {
		return 0.5 + sharedWords(valueA, valueB)/2
	}
	return sharedWords(strings.TrimSpace(a), strings.TrimSpace(b))
}

// sharedWords is which part of two texts is in words that both have, in order.
func sharedWords(a, b string) float64 {
	wordsA, wordsB := wordsOf(a), wordsOf(b)
	kept, _ := keptWords(wordsA, wordsB)
	same := 0
	for i, word := range wordsA {
		if kept[i] && word != " " {
			same += 2 * len(word)
		}
	}
	all := len(a) + len(b) - strings.Count(a, " ") - strings.Count(b, " ")
	if all == 0 {
		return 1
	}
	return min(1, float64(same)/float64(all))
}

// wordsOf cuts a line into words, blanks, and other characters one by one.
func wordsOf(line string) (words []string) {
	begin, last := 0, rune(-1)
	for i, r := range line {
		if kind := wordKind(r); kind != last || kind == 0 {
			if i > begin {
				words = append(words, line[begin:i])
			}
			begin, last = i, kind
		}
	}
	if begin < len(line) {
		words = append(words, line[begin:])
	}
	return words
}

func wordKind(r rune) rune {
	switch {
	case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
		return 'w'
	case r == ' ':
		return ' '
	}
	return 0
}

// keptWords says of each word of two lines whether it is in their longest common sequence.
func keptWords(a, b []string) (keptA, keptB []bool) {
	keptA, keptB = make([]bool, len(a)), make([]bool, len(b))
	start, endA, endB := 0, len(a), len(b)
	for start < min(endA, endB) && a[start] == b[start] {
		keptA[start], keptB[start] = true, true
		start++
	}
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		keptA[endA], keptB[endB] = true, true
	}
	if endA-start <= mostWords && endB-start <= mostWords {
		keepMiddle(a[start:endA], b[start:endB], keptA[start:endA], keptB[start:endB])
	}
	return keptA, keptB
}

// keepMiddle is keptWords by a table of all pairs.
func keepMiddle(a, b []string, keptA, keptB []bool) {
	length := make([][]int, len(a)+1) // of what is common to a[i:] and b[j:], in bytes
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			length[i][j] = max(length[i+1][j], length[i][j+1])
			if a[i] == b[j] {
				length[i][j] = max(length[i][j], length[i+1][j+1]+len(a[i]))
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j] && length[i][j] == length[i+1][j+1]+len(a[i]):
			keptA[i], keptB[j] = true, true
			i, j = i+1, j+1
		case length[i][j] == length[i+1][j]:
			i++
		default:
			j++
		}
	}
}

// marksOf says of each byte of two lines whether it differs.
func marksOf(a, b string) (markedA, markedB []bool) {
	wordsA, wordsB := wordsOf(a), wordsOf(b)
	keptA, keptB := keptWords(wordsA, wordsB)
	return markedWords(wordsA, keptA), markedWords(wordsB, keptB)
}

// markedWords marks words that are not kept, and what little stands between two of them.
func markedWords(words []string, kept []bool) []bool {
	var bytes []bool
	for i, word := range words {
		mark := !kept[i] || i > 0 && i+1 < len(words) && !kept[i-1] && !kept[i+1] && wordKind(rune(word[0])) != 'w'
		for range len(word) {
			bytes = append(bytes, mark)
		}
	}
	return bytes
}

// partsOf cuts a line of YAML into pieces of one colour, of which each is marked or not.
func partsOf(line string, marks []bool) (parts []diffPart) {
	at := 0
	for _, piece := range piecesOf(line) {
		for text := piece.Text; text != ""; {
			n := len(text)
			mark := marks != nil && marks[at]
			if marks != nil {
				for n = 1; n < len(text) && marks[at+n] == mark; n++ {
				}
			}
			parts = append(parts, diffPart{piece.Class, text[:n], mark})
			at, text = at+n, text[n:]
		}
	}
	return parts
}

// piecesOf is markUp of text.go, as pieces.
func piecesOf(line string) (pieces []diffPart) {
	add := func(class, text string) {
		if text != "" {
			pieces = append(pieces, diffPart{Class: class, Text: text})
		}
	}
	m := keyed.FindStringSubmatch(line)
	if m == nil {
		rest := strings.TrimLeft(line, " ")
		add("", line[:len(line)-len(rest)])
		add("t-s", rest)
		return pieces
	}
	add("", m[1])
	add("t-p", m[2])
	add("t-k", m[3])
	add("t-p", ":")
	rest := strings.TrimLeft(m[4], " ")
	add("", m[4][:len(m[4])-len(rest)])
	add(valueClass(rest), rest)
	return pieces
}

// valueClass is the colour of a value.
func valueClass(text string) string {
	switch {
	case number.MatchString(text):
		return "t-n"
	case literal.MatchString(text):
		return "t-l"
	}
	return "t-s"
}
