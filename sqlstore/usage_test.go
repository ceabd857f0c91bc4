package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

func TestUsage(t *testing.T) {
	s := newStore(t, Options{})
	want := map[string]Usage{}
	for i := range 5 {
		e := create(t, s, fmt.Sprintf("%sns/%d", maps, i))
		u := want[maps]
		want[maps] = Usage{u.Objects + 1, u.Bytes + int64(len(e.Key)+len(e.Value))}
	}
	got := s.Usage()
	if len(got) != 1 || got[maps] != want[maps] {
		t.Errorf("%+v, want %+v", got, want)
	}
}
