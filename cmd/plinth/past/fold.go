package past

import (
	"fmt"
	"iter"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Summary is a change, or several of statuses by one user, of which it has the newest.
type Summary struct {
	historyv1.Change
	Times   int
	Objects int // that were changed
}

// One is the summary of one change.
func One(change historyv1.Change) Summary { return Summary{change, 1, 1} }

// Way is Way of the change, or the number of changes.
func (s Summary) Way() string {
	if s.Times > 1 {
		return fmt.Sprintf("%d status updates", s.Times)
	}
	return Way(s.Description)
}

// Each returns a summary of each change.
func Each(all iter.Seq2[historyv1.Change, error]) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		for change, err := range all {
			if !yield(One(change), err) {
				return
			}
		}
	}
}

// Folded puts together the changes of statuses that one user made between two other changes. A page of these
// is read before the first is known, and no more than one change of each user is in memory.
func Folded(all iter.Seq2[historyv1.Change, error]) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		var f folding
		for change, err := range all {
			if err == nil && IsStatus(change) {
				if !f.add(change) && !f.yieldAll(yield) {
					return
				}
				continue
			}
			if !f.yieldAll(yield) || !yield(One(change), err) {
				return
			}
		}
		f.yieldAll(yield)
	}
}

// folding are the changes of statuses since the last other change, by user, the newest first.
type folding struct {
	lines   []*Summary
	byUser  map[string]*Summary
	objects map[string]map[historyv1.ObjectReference]bool
	known   int // objects
}

// mostFolded bounds the objects that are told apart.
const mostFolded = 100_000

// add is false if what was added has to be shown before more is: it would take too much memory.
func (f *folding) add(change historyv1.Change) bool {
	who := Person(change.Description)
	s := f.byUser[who]
	if s == nil {
		if f.byUser == nil {
			f.byUser, f.objects = map[string]*Summary{}, map[string]map[historyv1.ObjectReference]bool{}
		}
		s = &Summary{Change: change}
		f.byUser[who], f.objects[who] = s, map[historyv1.ObjectReference]bool{}
		f.lines = append(f.lines, s)
	}
	if s.Times++; s.Manager != change.Manager {
		s.Manager = ""
	}
	if !f.objects[who][change.Object] {
		f.objects[who][change.Object] = true
		f.known++
	}
	s.Objects = len(f.objects[who])
	return f.known < mostFolded
}

// yieldAll shows what was added.
func (f *folding) yieldAll(yield func(Summary, error) bool) bool {
	lines := f.lines
	*f = folding{}
	for _, s := range lines {
		if !yield(*s, nil) {
			return false
		}
	}
	return true
}
