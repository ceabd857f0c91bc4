package etcdtest_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// The seed and the number of random requests; make test-etcd asks for more than is asked for here, and
// for requests of its own each time.
const (
	seedVariable     = "PLINTH_TEST_ETCD_SEED"
	requestsVariable = "PLINTH_TEST_ETCD_REQUESTS"
)

func fromEnvironment(t *testing.T, variable string, otherwise uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// sequence is at most so long: etcd keeps few keys, but all of their history.
const sequenceLength = 2000

// TestLikeEtcd sends the same random requests to etcd and to plinth, and compares all answers and all
// that watches are told.
func TestLikeEtcd(t *testing.T) {
	seed, n := fromEnvironment(t, seedVariable, 1), int(fromEnvironment(t, requestsVariable, 1000))
	length := min(n, sequenceLength)
	want := map[uint64]func(*testing.T, release) *etcdtest.Record{}
	for s := seed; n > 0; s, n = s+1, n-length {
		want[s] = playedOnce(etcdtest.Generate(s, length))
	}
	eachMemory(t, func(t *testing.T, plinth endpoint) {
		for s, record := range want {
			t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) {
				steps := etcdtest.Generate(s, length)
				got := play(t, plinth, steps)
				for _, r := range releases() {
					if n, d := r.compare(record(t, r), got); d != "" {
						t.Errorf("plinth differs from etcd %s:\n%s\n%s", r.name, d, shortest(t, r, plinth, steps[:n], kindOf(d)))
					}
				}
			})
		}
	})
}

// playedOnce returns what a release of etcd answers to steps. The etcd runs until the end of the test that asks first.
func playedOnce(steps []etcdtest.Step) func(*testing.T, release) *etcdtest.Record {
	type played struct {
		sync.Once
		record *etcdtest.Record
	}
	by := map[string]*played{}
	for _, r := range releases() {
		by[r.name] = &played{}
	}
	return func(t *testing.T, r release) *etcdtest.Record {
		t.Helper()
		p := by[r.name]
		p.Do(func() { p.record = play(t, r.start, steps) })
		if p.record == nil {
			t.Fatalf("etcd %s has failed in another test", r.name)
		}
		return p.record
	}
}

// TestEtcdIsLikeEtcd proves that what is compared does not depend on chance, and that the faults that
// are looked for do not happen with etcd.
func TestEtcdIsLikeEtcd(t *testing.T) {
	t.Parallel()
	steps := etcdtest.Generate(1, 1000)
	if _, d := etcdtest.Compare(play(t, realEtcd, steps), play(t, realEtcd, steps)); d != "" {
		t.Error(d)
	}
}

func play(t *testing.T, at endpoint, steps []etcdtest.Step) *etcdtest.Record {
	t.Helper()
	r, err := etcdtest.Play(t.Context(), etcdtest.Dial(t, at(t)), steps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kindOf returns what a difference is about: a watch, or a kind of request.
func kindOf(difference string) string {
	words := strings.Fields(difference + " none none none")
	if words[0] == "watch" {
		return "watch"
	}
	return words[0] + words[2]
}

// shrinkTime is how long a failed test looks for a shorter sequence.
const shrinkTime = time.Minute

// shortest looks for few requests that show a difference of a kind.
func shortest(t *testing.T, r release, plinth endpoint, steps []etcdtest.Step, kind string) string {
	var d string
	steps = etcdtest.Shrink(steps, time.Now().Add(shrinkTime), func(steps []etcdtest.Step) (differs bool) {
		t.Run("shrink", func(t *testing.T) {
			if _, found := r.compare(play(t, r.start, steps), play(t, plinth, steps)); kindOf(found) == kind {
				d, differs = found, true
			}
		})
		return differs
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests are enough: %s", len(steps), d)
	for i, s := range steps[:min(len(steps), 40)] {
		fmt.Fprintf(&b, "\n%3d %T %s", i, s.Request, s.Request)
	}
	return b.String()
}
