package etcdtest

// checkLeases checks that every revision that no call made is the end of a lease: it deletes all keys of one
// lease that had time to expire. A lease ends once.
func (o *order) checkLeases(leases []*Lease, owner map[int64]*Call) {
	known := map[int64]*Lease{}
	for _, l := range leases {
		known[l.ID] = l
	}
	ended := map[int64]int64{}
	for i, r := range o.revisions {
		number := int64(i + firstWrite)
		if owner[number] != nil || len(r.changes) == 0 {
			continue
		}
		id := r.before[0].Lease
		l := known[id]
		switch {
		case l == nil || !o.endOf(id, number, r):
			o.fault("revision %d was made by nobody: %+v, before: %+v", number, r.changes, r.before)
		case ended[id] != 0:
			o.fault("lease %d ended at %d and at %d", id, ended[id], number)
		case r.seen.At < l.Renewed+l.TTL:
			o.fault("lease %d of %v, renewed at %v, had ended at %v", id, l.TTL, l.Renewed, r.seen.At)
		default:
			ended[id] = number
		}
	}
	for _, l := range leases {
		if !l.Gone {
			o.fault("lease %d has not ended", l.ID)
		}
	}
	for _, key := range o.keys {
		if kv := o.at(key, o.newest); kv.Lease != 0 {
			o.fault("%+v is still there, without its lease", kv)
		}
	}
}

// endOf reports whether a revision deletes exactly the keys that lease id had.
func (o *order) endOf(id, number int64, r revision) bool {
	for i, c := range r.changes {
		if !c.Delete || r.before[i].Lease != id {
			return false
		}
	}
	for _, key := range o.keys {
		if o.at(key, number).Lease == id {
			return false
		}
	}
	return true
}
