package logtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	minute = int64(60_000)
	hour   = 60 * minute
)

func TestLeases(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l, ctx := db.openRaw(t), context.Background()
		if ids, next, err := l.Expired(ctx, 10); err != nil || len(ids) != 0 || next >= 0 {
			t.Errorf("expired, of none: %v, %d, %v", ids, next, err)
		}
		l.grant(hour, 3, -1, 1<<62)
		l.grant(-1, 5)
		l.grant(-minute, 4)
		diff(t, "leases", []int64{-1, 3, 4, 5, 1 << 62}, l.leases())
		some, now, err := l.Leases(ctx, []int64{5, 3, 77})
		if err != nil || len(some) != 2 || some[0].ID != 3 || some[0].TTL != 100 || some[1].ID != 5 {
			t.Errorf("some leases: %+v, %v", some, err)
		}
		if left := some[0].Expires - now; left > hour || left < hour-30*minute || some[1].Expires > now {
			t.Errorf("at %d: %+v", now, some)
		}
		if none, now, err := l.Leases(ctx, []int64{}); err != nil || len(none) != 0 || now == 0 {
			t.Errorf("no leases: %+v, %d, %v", none, now, err)
		}
		for _, test := range []struct {
			limit int
			want  []int64
		}{{1, []int64{4}}, {10, []int64{4, 5}}} {
			if ids, next, err := l.Expired(ctx, test.limit); err != nil || next != 0 || !slices.Equal(ids, test.want) {
				t.Errorf("at most %d expired: %v, %d, %v", test.limit, ids, next, err)
			}
		}
		renewed, err := l.Renew(ctx, []int64{5, 3, 77})
		if err != nil || len(renewed) != 1 || renewed[0].ID != 3 {
			t.Fatalf("renewed %+v, %v", renewed, err)
		}
		read, now, err := l.Leases(ctx, []int64{3})
		if err != nil || !slices.Equal(read, renewed) {
			t.Errorf("read %+v after renewal to %+v, %v", read, renewed, err)
		}
		if left := renewed[0].Expires - now; left > 100_000 {
			t.Errorf("it expires in %d ms, of 100 s", left)
		}
		if none, err := l.Renew(ctx, nil); err != nil || len(none) != 0 {
			t.Errorf("renewed %+v of none, %v", none, err)
		}
		l.do(changelog.Decision{Revoke: []int64{4, 5, 88}})
		if ids, next, err := l.Expired(ctx, 10); err != nil || len(ids) != 0 || next <= 0 || next > 100_000 {
			t.Errorf("expired, of others: %v, %d, %v", ids, next, err)
		}
		var found []changelog.Lease
		err = l.Transact(ctx, changelog.Ask{Leases: []int64{-1, 4, 3}}, func(f *changelog.Found) (d changelog.Decision, err error) {
			found = slices.SortedFunc(slices.Values(f.Leases), func(a, b changelog.Lease) int { return int(a.ID - b.ID) })
			return d, nil
		})
		if err != nil || len(found) != 2 || found[0].ID != -1 || found[1] != renewed[0] {
			t.Errorf("found %+v, %v", found, err)
		}
		// A lease that goes and one that comes may have the same id.
		l.do(changelog.Decision{Revoke: []int64{3}, Grant: []changelog.Lease{{ID: 3, TTL: 7, Expires: 1 << 50}}})
		if read, _, err := l.Leases(ctx, []int64{3}); err != nil || read[0].TTL != 7 {
			t.Errorf("granted anew: %+v, %v", read, err)
		}
	})
}

// TestManyLeases names more of them than a statement has places for.
func TestManyLeases(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		var ids []int64
		for i := range int64(3000) {
			ids = append(ids, i+1)
		}
		l.grant(hour, ids...)
		read, _, err := l.Leases(t.Context(), ids)
		if err != nil || len(read) != len(ids) || !slices.IsSortedFunc(read, func(a, b changelog.Lease) int { return int(a.ID - b.ID) }) {
			t.Errorf("read %d, %v", len(read), err)
		}
		if renewed, err := l.Renew(t.Context(), ids); err != nil || len(renewed) != len(ids) {
			t.Errorf("renewed %d, %v", len(renewed), err)
		}
	})
}

// TestBeat: the time in which nobody watched over the leases does not count.
func TestBeat(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l, ctx := db.openRaw(t), context.Background()
		beat := func(most int64) int64 {
			t.Helper()
			shifted, err := l.Beat(ctx, most)
			if err != nil {
				t.Fatal(err)
			}
			return shifted
		}
		if s := beat(0); s != 0 {
			t.Errorf("the first beat shifts by %d", s)
		}
		l.grant(hour, 1, 2)
		before, began, err := l.Leases(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := beat(hour); s != 0 {
			t.Errorf("a beat in time shifts by %d", s)
		}
		var gap int64
		for gap == 0 {
			gap = beat(1) // some milliseconds have passed by themselves
		}
		after, now, err := l.Leases(ctx, nil)
		if err != nil || gap <= 1 || gap > now-began {
			t.Errorf("shifted by %d in %d ms, %v", gap, now-began, err)
		}
		for i := range after {
			if after[i].Expires != before[i].Expires+gap {
				t.Errorf("shifted by %d: %+v, before %+v", gap, after[i], before[i])
			}
		}
	})
}

// TestBeatSetBack: when the clock was set back, leases do not live longer by that.
func TestBeatSetBack(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // no other connection can look in
		}
		l := db.openRaw(t)
		l.grant(hour, 1)
		before, now, err := l.Leases(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		db.exec(t, `UPDATE meta SET value = '`+strconv.FormatInt(now+24*hour, 10)+`' WHERE name = 'lease_beat'`)
		db.exec(t, `UPDATE lease SET expires = expires + `+strconv.FormatInt(24*hour, 10))
		shifted, err := l.Beat(t.Context(), hour)
		if err != nil {
			t.Fatal(err)
		}
		after, _, err := l.Leases(t.Context(), nil)
		if err != nil || shifted > -23*hour || after[0].Expires != before[0].Expires+24*hour+shifted {
			t.Errorf("shifted by %d: %+v, before %+v, %v", shifted, after, before, err)
		}
	})
}

// TestBeatOnce: of processes that come back at once, one shifts the leases.
func TestBeatOnce(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		logs := []*raw{db.openRaw(t), db.openRaw(t), db.openRaw(t)}
		if _, err := logs[0].Beat(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		logs[0].grant(hour, 1)
		before, now, err := logs[0].Leases(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		db.exec(t, `UPDATE meta SET value = '`+strconv.FormatInt(now-24*hour, 10)+`' WHERE name = 'lease_beat'`)
		var wg sync.WaitGroup
		var sum atomic.Int64
		for _, l := range logs {
			wg.Go(func() {
				shifted, err := l.Beat(context.Background(), hour)
				if err != nil {
					t.Error(err)
				}
				sum.Add(shifted)
			})
		}
		wg.Wait()
		after, _, err := logs[0].Leases(t.Context(), nil)
		if err != nil || sum.Load() < 24*hour || sum.Load() > 25*hour || after[0].Expires != before[0].Expires+sum.Load() {
			t.Errorf("shifted by %d: %+v after %+v, %v", sum.Load(), after, before, err)
		}
	})
}

// TestRenewOrRevoke renews leases while another process revokes those that have expired: each
// is either renewed and there, or revoked and gone.
func TestRenewOrRevoke(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		renewer := db.openRaw(t)
		revoker := renewer
		if db.name == "postgres" || db.name == "mariadb" {
			revoker = db.openRaw(t)
		}
		renewals, revocations := 0, 0
		for round := range int64(40) {
			ids := []int64{3*round + 3, 3*round + 1, 3*round + 2}
			renewer.grant(5, ids...) // they expire while the two are at it
			var renewed, revoked []int64
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
				leases, err := renewer.Renew(context.Background(), ids)
				if err != nil {
					t.Error(err)
				}
				for _, l := range leases {
					renewed = append(renewed, l.ID)
				}
			})
			wg.Go(func() { revoked = revoker.revokeExpired(ids) })
			wg.Wait()
			there, _, err := renewer.Leases(context.Background(), ids)
			if err != nil || len(there) != len(renewed) || !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(append(revoked, renewed...)))) {
				t.Fatalf("of %v renewed %v, revoked %v, there are %+v, %v", ids, renewed, revoked, there, err)
			}
			renewals, revocations = renewals+len(renewed), revocations+len(revoked)
		}
		t.Log(renewals, "were renewed and", revocations, "revoked")
	})
}

// revokeExpired revokes leases when they have expired, until each is revoked or was renewed.
func (l *raw) revokeExpired(ids []int64) (revoked []int64) {
	for left := len(ids); left > 0; {
		var now []int64
		err := l.Transact(context.Background(), changelog.Ask{Leases: ids}, func(f *changelog.Found) (changelog.Decision, error) {
			now, left = nil, 0
			for _, lease := range f.Leases {
				switch {
				case lease.Expires <= f.Now:
					now = append(now, lease.ID)
				case lease.Expires-f.Now < 50_000: // it has 100 s when it was renewed
					left++
				}
			}
			return changelog.Decision{Revoke: now}, nil
		})
		if err != nil {
			l.t.Error(err)
			return revoked
		}
		revoked = append(revoked, now...)
	}
	return revoked
}

// TestLeasesCrossed renews, revokes, grants and shifts the same leases from several processes,
// in any order: nobody fails by a deadlock.
func TestLeasesCrossed(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		var ids []int64
		for i := range int64(20) {
			ids = append(ids, i)
		}
		var wg sync.WaitGroup
		for p := range 3 {
			l := db.openRaw(t)
			wg.Go(func() {
				for i := range 40 {
					mine := slices.Clone(ids)
					rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					if err := l.crossed(i+p, mine[:10]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func (l *raw) crossed(i int, ids []int64) (err error) {
	switch i % 4 {
	case 0:
		_, err = l.Beat(context.Background(), 0)
	case 1, 2:
		_, err = l.Renew(context.Background(), ids)
	case 3:
		err = l.Transact(context.Background(), changelog.Ask{Leases: ids}, func(f *changelog.Found) (d changelog.Decision, err error) {
			there := map[int64]bool{}
			for _, lease := range f.Leases {
				there[lease.ID] = true
			}
			for n, id := range ids {
				if there[id] && n%3 == 0 {
					d.Revoke = append(d.Revoke, id)
				} else if !there[id] {
					d.Grant = append(d.Grant, changelog.Lease{ID: id, TTL: 100, Expires: f.Now + hour})
				}
			}
			return d, nil
		})
	}
	return err
}
