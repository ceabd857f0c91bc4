package etcd

import (
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// readFloor reads the changes of the compacted revision if the watch starts with it. A Watcher starts above
// it, but its rows exist until more is compacted.
func (w *watch) readFloor() error {
	if w.floor == 0 {
		return nil
	}
	first, err := w.changesAt(w.floor)
	if err != nil {
		return err
	}
	head, err := w.st.s.log.Head(w.ctx)
	if err != nil {
		return err
	}
	if head.Floor > changelog.LastID(w.floor) {
		return changelog.ErrCompacted // rows may have been deleted before they were read
	}
	w.first, w.floor = first, 0
	return nil
}

// changesAt returns the events of a revision in the range of the watch.
func (w *watch) changesAt(revision int64) (events []*mvccpb.Event, err error) {
	const most = 1000
	last := changelog.LastID(revision)
	after, limit := changelog.FirstID(revision)-1, 16
	for after < last {
		rows, err := w.st.s.log.Rows(w.ctx, after, limit)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Revision <= last && w.wants(&rows[i]) {
				events = append(events, eventOfRow(&rows[i]))
			}
		}
		if len(rows) < limit {
			break
		}
		after, limit = rows[limit-1].Revision, min(4*limit, most)
	}
	return events, nil
}

func (w *watch) wants(row *changelog.Row) bool {
	if row.Deleted && w.noDelete || !row.Deleted && w.noPut {
		return false
	}
	return w.from <= row.Key && row.Key < w.to
}

// eventOfRow returns the event of a row. The row that it replaced is compacted.
func eventOfRow(row *changelog.Row) *mvccpb.Event {
	modified, _ := changelog.Split(row.Revision)
	kv := &mvccpb.KeyValue{Key: []byte(row.Key), ModRevision: modified}
	if row.Deleted {
		return &mvccpb.Event{Type: mvccpb.DELETE, Kv: kv}
	}
	kv.CreateRevision, _ = changelog.Split(row.CreateRevision)
	kv.Version, kv.Lease, kv.Value = row.Version, row.Lease, row.Value
	return &mvccpb.Event{Kv: kv}
}
