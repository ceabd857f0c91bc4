package raw

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestDecide(t *testing.T) {
	no := errors.New("no")
	for _, test := range []struct {
		name  string
		d     changelog.Decision
		err   error
		wrote bool
		bad   bool
	}{
		{name: "nothing"},
		{name: "rows", d: changelog.Decision{Rows: []changelog.Row{{Revision: 8}, {Revision: 10}}}, wrote: true},
		{name: "a lease", d: changelog.Decision{Grant: []changelog.Lease{{ID: 1}}}, wrote: true},
		{name: "no lease", d: changelog.Decision{Revoke: []int64{1}}, wrote: true},
		{name: "a row at the head", d: changelog.Decision{Rows: []changelog.Row{{Revision: 7}}}, bad: true},
		{name: "rows out of order", d: changelog.Decision{Rows: []changelog.Row{{Revision: 9}, {Revision: 8}}}, bad: true},
		{name: "a long key", d: changelog.Decision{Rows: []changelog.Row{{Revision: 9, Key: strings.Repeat("a", 1025)}}}, bad: true},
		{name: "an error", d: changelog.Decision{Revoke: []int64{1}}, err: no, bad: true},
	} {
		found := &changelog.Found{Head: changelog.Head{Revision: 7}}
		_, wrote, err := Decide(found, func(*changelog.Found) (changelog.Decision, error) { return test.d, test.err })
		var rejected *Rejected
		if wrote != test.wrote || errors.As(err, &rejected) != test.bad || test.err != nil && rejected.Err != no {
			t.Errorf("%s: %v, %v", test.name, wrote, err)
		}
	}
}

func TestEnded(t *testing.T) {
	no, lost, told := errors.New("no"), errors.New("lost"), errors.New("told")
	classify := func(error) error { return told }
	if err := Ended(nil, classify); err != nil {
		t.Errorf("without an error: %v", err)
	}
	if err := Ended(fmt.Errorf("try: %w", &Rejected{no}), classify); err != no {
		t.Errorf("of decide: %v", err)
	}
	if err := Ended(lost, classify); !errors.Is(err, told) || errors.Is(err, lost) {
		t.Errorf("of the database: %v", err)
	}
}

func TestDue(t *testing.T) {
	leases := []changelog.Lease{{ID: 5, Expires: 10}, {ID: 3, Expires: 20}, {ID: 4, Expires: 30}}
	for _, test := range []struct {
		now, next int64
		ids       []int64
	}{{9, 1, nil}, {10, 0, []int64{5}}, {29, 0, []int64{5, 3}}, {99, 0, []int64{5, 3, 4}}} {
		if ids, next := Due(leases, test.now); next != test.next || !slices.Equal(ids, test.ids) {
			t.Errorf("at %d: %v, %d", test.now, ids, next)
		}
	}
	if ids, next := Due(nil, 5); ids != nil || next >= 0 {
		t.Errorf("without leases: %v, %d", ids, next)
	}
}

func TestMissed(t *testing.T) {
	for _, test := range []struct{ last, now, most, want int64 }{
		{0, 1000, 10, 0}, {990, 1000, 10, 0}, {989, 1000, 10, 11}, {2000, 1000, 10, -1000}, {1010, 1000, 10, 0},
	} {
		if got := Missed(test.last, test.now, test.most); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}
