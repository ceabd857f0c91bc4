package etcdtest_test

import (
	"testing"

	"github.com/plinth-io/plinth/bench/way"
)

func newWay(t testing.TB, target string) *way.Way {
	t.Helper()
	w, err := way.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}
