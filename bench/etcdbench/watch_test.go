package etcdbench

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/plinth-io/plinth/bench/measure"
)

func put(revision int64, value []byte) *mvccpb.Event {
	return &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: &mvccpb.KeyValue{ModRevision: revision, Value: value}}
}

func deletion(revision int64, before []byte) *mvccpb.Event {
	e := &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{ModRevision: revision}}
	if before != nil {
		e.PrevKv = &mvccpb.KeyValue{Value: before}
	}
	return e
}

// TestVerdict lets watches miss events, get them twice, out of order and without cause. Each fault
// has to be found, and a watch without faults is one.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		events []*mvccpb.Event
		want   string
	}{
		"all":           {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0))}, "of 3"},
		"in doubt":      {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0)), put(5, valueOf(2))}, "of 3"},
		"lost":          {[]*mvccpb.Event{put(2, valueOf(0)), deletion(4, valueOf(0))}, "of 3, 1 lost"},
		"lost deletion": {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1))}, "of 3, 1 lost"},
		"repeated":      {[]*mvccpb.Event{put(2, valueOf(0)), put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0))}, "of 3, 1 repeated"},
		"disordered":    {[]*mvccpb.Event{put(3, valueOf(1)), put(2, valueOf(0)), deletion(4, valueOf(0))}, "of 3, 1 out of order"},
		"one revision":  {[]*mvccpb.Event{put(2, valueOf(0)), put(2, valueOf(1)), deletion(4, valueOf(0))}, "of 3, 1 out of order"},
		"not written":   {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0)), deletion(5, valueOf(1))}, "of 3, 1 of no write"},
		"of another":    {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0)), put(5, valueOf(3))}, "of 3, 1 of no write"},
		"unread":        {[]*mvccpb.Event{put(2, valueOf(0)), put(3, valueOf(1)), deletion(4, valueOf(0)), put(5, []byte("x")), deletion(6, nil)}, "of 3, 2 of no write"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := measure.NewAudience(t.Context())
			for _, resource := range []uint8{0, 0, 0, 1} {
				a.Ledger.Begin(resource)
			}
			a.Ledger.Put(0, measure.Done)
			a.Ledger.Put(1, measure.Done)
			a.Ledger.Put(2, measure.Unknown)
			a.Ledger.Put(3, measure.Done)
			a.Ledger.Deleted(0, measure.Done)
			a.Seat(0, 1, func(w *measure.Watch) {
				for _, e := range c.events {
					w.Take(eventOf(e), time.Now())
				}
			})
			a.End()
			v := a.Judge()
			got := v.Faults(plain)
			if got.Note != c.want || (got.Value > 0) != strings.Contains(c.want, ",") {
				t.Errorf("%v: %q, want %q", got.Value, got.Note, c.want)
			}
		})
	}
}

func TestValue(t *testing.T) {
	before := time.Now()
	v := valueOf(123)
	n, sent, ok := writeOf(v)
	if len(v) != valueBytes || n != 123 || !ok || sent.Before(before.Truncate(0)) || sent.After(time.Now()) {
		t.Errorf("%d bytes of write %d at %v, %v", len(v), n, sent, ok)
	}
	for _, bad := range [][]byte{nil, {}, []byte("x"), v[:100], v[1:], []byte(`{"n":"1","sent":"2","pad":""}`)} {
		if _, _, ok := writeOf(bad); ok {
			t.Errorf("%.40q is taken for a value", bad)
		}
	}
}
