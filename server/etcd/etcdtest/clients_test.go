package etcdtest_test

import (
	"sync"
	"testing"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// TestClientsLikeEtcds has several clients write at once to keys of their own. Each is answered
// what etcd answers, and the history that is left is etcd's for each of them, without gaps.
func TestClientsLikeEtcds(t *testing.T) {
	seed := fromEnvironment(t, seedVariable, 1)
	sequences := etcdtest.GenerateClients(seed, 6, 150)
	want := sync.OnceValue(func() (all [][]*etcdtest.Record) {
		for _, r := range releases() {
			all = append(all, playClients(t, r.start, sequences))
		}
		return all
	})
	eachEndpoint(t, func(t *testing.T, plinth endpoint) {
		got := playClients(t, plinth, sequences)
		for i, r := range releases() {
			compareClients(t, r, want()[i], got)
		}
	})
}

// TestEtcdClientsAreLikeEtcds proves that what is compared does not depend on how clients meet.
func TestEtcdClientsAreLikeEtcds(t *testing.T) {
	t.Parallel()
	sequences := etcdtest.GenerateClients(1, 6, 150)
	compareClients(t, releases()[0], playClients(t, realEtcd, sequences), playClients(t, realEtcd, sequences))
}

func playClients(t *testing.T, at endpoint, sequences [][]etcdtest.Step) []*etcdtest.Record {
	t.Helper()
	r, err := etcdtest.PlayClients(t.Context(), etcdtest.Dial(t, at(t)), sequences)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func compareClients(t *testing.T, r release, want, got []*etcdtest.Record) {
	t.Helper()
	for i := range want {
		if _, d := r.compare(want[i], got[i]); d != "" {
			t.Errorf("client %d differs from etcd %s: %s", i, r.name, d)
		}
	}
}
