package etcdtest

import (
	"errors"
	"slices"
)

// Verdict is the result of checking a History.
type Verdict struct {
	Faults   []string
	history  *History
	drawings map[string]drawing
}

// Check judges a history after all clients have ended and all watches have reached its end. The union of what
// the watches received must be one sequence of revisions without gaps, and it must explain everything else:
// each watch received its part of it, each call read the state of the revision that it names, each write
// occurs once, all other revisions are leases that ended in time, and no call was answered from an older
// state than a call that was answered before it began. Independently of watches and of revisions in headers,
// the calls on each key must be linearizable.
func Check(h *History) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := unite(h.Watches)
	owner := o.owners(h.Calls)
	for i := range h.Calls {
		c := &h.Calls[i]
		switch {
		case c.Refused:
			o.fault("%+v was refused", *c)
		case c.Writes() && c.Succeeded:
			o.checkWrite(c)
		case c.Error == "" && c.Kind != Compact:
			o.checkRead(c)
		}
	}
	o.checkTimes(h.Calls)
	o.checkCompactions(h.Calls)
	for _, w := range h.Watches {
		o.checkWatch(w)
		if at := w.Position(); at < o.newest {
			if missed := o.firstIn(w, at+1, o.newest); missed != 0 {
				o.fault("watch %s ended at %d and was not told of %d", w.Name, at, missed)
			}
		}
	}
	o.checkLeases(h.Leases, owner)
	v := &Verdict{history: h, drawings: checkKeys(h, o, owner, Patience)}
	v.Faults = slices.Clone(o.faults)
	return v
}

// Save writes the history to dir, with a drawing of the calls on each key that are not linearizable. It
// returns the paths.
func (v *Verdict) Save(dir string) (paths []string, err error) {
	path, err := v.history.Save(dir)
	paths = append(paths, path)
	for name, d := range v.drawings {
		path, failed := d.save(dir, name)
		paths, err = append(paths, path), errors.Join(err, failed)
	}
	return paths, err
}
