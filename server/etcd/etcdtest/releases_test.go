package etcdtest_test

import (
	"os"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// release is one of etcd that plinth is compared with.
type release struct {
	name    string
	suffix  string // of its programs' names
	start   endpoint
	differs []etcdtest.Difference // its answers from those that plinth gives
}

// compare returns the first difference that the release does not explain, as etcdtest.Compare does.
func (r release) compare(etcd, plinth *etcdtest.Record) (after int, difference string) {
	return etcdtest.Compare(etcd.Without(r.differs), plinth.Without(r.differs))
}

// releases are those that plinth is compared with: also the older one if requests are asked for, as make test-etcd
// does. make test does not build it.
func releases() []release {
	all := []release{{"3.7", "", realEtcd, nil}, {"3.6", "-3.6", olderEtcd, etcdtest.Older}}
	if os.Getenv(requestsVariable) == "" {
		return all[:1]
	}
	return all
}

// needOlder skips a test that builds programs of the older release.
func needOlder(t *testing.T) {
	if len(releases()) == 1 {
		t.Skipf("%s is not set; make test-etcd does so", requestsVariable)
	}
}

// eachRelease runs test with each of them, one after the other.
func eachRelease(t *testing.T, test func(*testing.T, release)) {
	for _, r := range releases() {
		t.Run("etcd="+r.name, func(t *testing.T) { test(t, r) })
	}
}

// TestOlder proves that each difference is one: the older release answers otherwise when all others are left out, and not
// when this one is, too.
func TestOlder(t *testing.T) {
	needOlder(t)
	t.Parallel()
	for i, d := range etcdtest.Older {
		older, newer := play(t, olderEtcd, d.Shown), play(t, realEtcd, d.Shown)
		others := slices.Delete(slices.Clone(etcdtest.Older), i, i+1)
		if after, _ := etcdtest.Compare(older.Without(others), newer.Without(others)); after != len(d.Shown) {
			t.Errorf("%s: the last answers are\n3.6 %s\n3.7 %s", d.Why, older.Answers[len(d.Shown)-1], newer.Answers[len(d.Shown)-1])
		}
		if _, more := etcdtest.Compare(older.Without(etcdtest.Older), newer.Without(etcdtest.Older)); more != "" {
			t.Errorf("%s: there is more: %s", d.Why, more)
		}
	}
}

// TestWithout leaves a difference out of the answers to the requests that it is about, and of no others.
func TestWithout(t *testing.T) {
	const keysOnly, all, answer, without = `*etcdserverpb.RangeRequest key:"a"  keys_only:true`, `*etcdserverpb.RangeRequest key:"a"`, `kvs:{key:"a"  version:1  lease:7}`, `kvs:{key:"a"  version:1}`
	r := &etcdtest.Record{Sent: []string{keysOnly, all}, Answers: []string{answer, answer}}
	got := r.Without(etcdtest.Older)
	if got.Answers[0] != without || got.Answers[1] != answer || r.Answers[0] != answer {
		t.Errorf("without differences %q, and %q itself", got.Answers, r.Answers)
	}
	if _, d := (release{}).compare(r, got); d == "" {
		t.Error("no difference is found where none may be left out")
	}
	if _, d := (release{differs: etcdtest.Older}).compare(r, got); d != "" {
		t.Errorf("a difference that may be left out is found: %s", d)
	}
}
