package etcdtest

import (
	"testing"
)

// TestEtcdIsLikeEtcd plays a sequence twice to an etcd of its own each: what is compared does not depend on
// chance, and the faults that are looked for do not happen with etcd.
func TestEtcdIsLikeEtcd(t *testing.T) {
	t.Parallel()
	steps := Generate(1, 2000)
	var records [2]*Record
	for i := range records {
		var err error
		if records[i], err = Play(t.Context(), Start(t), steps); err != nil {
			t.Fatal(err)
		}
	}
	if d := Compare(records[0], records[1]); d != "" {
		t.Error(d)
	}
}

// TestEtcdClientsAreLikeEtcds is the same with clients that write at once.
func TestEtcdClientsAreLikeEtcds(t *testing.T) {
	t.Parallel()
	sequences := GenerateClients(1, 6, 300)
	var records [2][]*Record
	for i := range records {
		var err error
		if records[i], err = PlayClients(t.Context(), Start(t), sequences); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sequences {
		if d := Compare(records[0][i], records[1][i]); d != "" {
			t.Errorf("client %d: %s", i, d)
		}
	}
}
