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
	want := map[uint64]func() *etcdtest.Record{}
	for s := seed; n > 0; s, n = s+1, n-length {
		want[s] = sync.OnceValue(func() *etcdtest.Record {
			return play(t, realEtcd, etcdtest.Generate(s, length))
		})
	}
	eachMemory(t, func(t *testing.T, plinth endpoint) {
		for s, record := range want {
			t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) {
				steps := etcdtest.Generate(s, length)
				if n, d := etcdtest.Compare(record(), play(t, plinth, steps)); d != "" {
					t.Errorf("plinth differs from etcd:\n%s\n%s", d, shortest(t, plinth, steps[:n], kindOf(d)))
				}
			})
		}
	})
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
func shortest(t *testing.T, plinth endpoint, steps []etcdtest.Step, kind string) string {
	var d string
	steps = etcdtest.Shrink(steps, time.Now().Add(shrinkTime), func(steps []etcdtest.Step) (differs bool) {
		t.Run("shrink", func(t *testing.T) {
			if _, found := etcdtest.Compare(play(t, realEtcd, steps), play(t, plinth, steps)); kindOf(found) == kind {
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
