package etcdtest

import "slices"

// checkWatch compares what a watch received with what it should have received: everything in its range from
// its start on, once, in order, and all changes of a revision in one response.
func (o *order) checkWatch(w *Watch) {
	for i, s := range w.Streams {
		if want := w.resumeAt(i); s.Start > want {
			o.fault("watch %s: stream %d starts with %d, not at most with %d", w.Name, i, s.Start, want)
		}
		o.checkStream(w, s)
	}
}

// resumeAt returns the revision at which a stream must start so that the watch misses nothing.
func (w *Watch) resumeAt(stream int) int64 {
	revision := int64(firstWrite)
	for _, s := range w.Streams[:stream] {
		revision = max(revision, s.Position()+1)
	}
	return revision
}

// checkStream follows one stream.
func (o *order) checkStream(w *Watch, s *Stream) {
	next := s.Start // everything before was received
	for _, r := range s.Responses {
		if r.Canceled != "" {
			o.fault("watch %s from %d: %s", w.Name, s.Start, r.Canceled)
		}
		if r.Progress {
			if missed := o.firstIn(w, next, r.Revision); missed != 0 {
				o.fault("watch %s from %d: progress to %d, but %d was not told", w.Name, s.Start, r.Revision, missed)
			}
			next = max(next, r.Revision+1)
		}
		for changes := r.Changes; len(changes) > 0; {
			mod := changes[0].KV.Mod
			n := slices.IndexFunc(changes, func(c Change) bool { return c.KV.Mod != mod })
			if n < 0 {
				n = len(changes)
			}
			if mod < next {
				o.fault("watch %s from %d: %d after everything up to %d", w.Name, s.Start, mod, next-1)
			}
			if missed := o.firstIn(w, next, mod-1); missed != 0 {
				o.fault("watch %s from %d: %d was told, but %d was not", w.Name, s.Start, mod, missed)
			}
			if r.Revision < mod {
				o.fault("watch %s from %d: the header of a response with %d has %d", w.Name, s.Start, mod, r.Revision)
			}
			o.checkChanges(w, mod, changes[:n])
			next, changes = max(next, mod+1), changes[n:]
		}
	}
}

// firstIn returns the first revision from..through that changed something in the range of w; 0: none.
func (o *order) firstIn(w *Watch, from, through int64) int64 {
	for r := max(from, firstWrite); r <= min(through, o.newest); r++ {
		for _, c := range o.revision(r).changes {
			if w.follows(c.KV.Key) {
				return r
			}
		}
	}
	return 0
}

func (w *Watch) follows(key string) bool { return w.From <= key && key < w.End }

// checkChanges checks that changes are all changes of revision mod in the range of w.
func (o *order) checkChanges(w *Watch, mod int64, changes []Change) {
	var want []Change
	whole := o.revision(mod)
	for i, c := range whole.changes {
		if !w.follows(c.KV.Key) {
			continue
		}
		if before := whole.before[i]; w.Before && before != (KV{}) {
			c.Before = &before
		}
		want = append(want, c)
	}
	left := slices.Clone(changes)
	for _, c := range want {
		i := slices.IndexFunc(left, func(got Change) bool { return sameChange(got, c) })
		if i < 0 {
			o.fault("watch %s: a response with revision %d lacks %+v (before: %+v), and has %+v", w.Name, mod, c, c.Before, changes)
			return
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		o.fault("watch %s: a response with revision %d also has %+v", w.Name, mod, left)
	}
}

func sameChange(a, b Change) bool {
	if (a.Before == nil) != (b.Before == nil) || a.Before != nil && *a.Before != *b.Before {
		return false
	}
	return a.Delete == b.Delete && a.KV == b.KV
}
