package changelog_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestKeepOf(t *testing.T) {
	rules, err := ParseRules("*=7d,*.apps=1d,deployments.apps=90d,secrets=0,pods=3,*.core=5d")
	if err != nil {
		t.Fatal(err)
	}
	retention := NewRetention(rules...)
	for key, want := range map[string]string{
		"/registry/apps/deployments/a/b":          "deployments.apps=90d",
		"/registry/apps/replicasets/a/b":          "*.apps=1d",
		"/registry/core/secrets/a/b":              "",
		"/registry/core/pods/a/b":                 "pods=3",
		"/registry/core/nodes/a":                  "*.core=5d",
		"/registry/example.com/deployments/a/b":   "*=7d",
		"/registry/_plinth/servers/a":             "",
		"/registry/core/pods":                     "",
		"/registry/rbac.authorization.k8s.io/x/y": "*=7d",
	} {
		r, ok := retention.Of(key)
		got := ""
		if ok {
			got = r.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if r, ok := (*Retention)(nil).Of("/registry/core/pods/a/b"); ok {
		t.Errorf("without rules: %s", r)
	}
	other := NewRetention(rules[1:]...)
	if retention.Fingerprint() == other.Fingerprint() || (*Retention)(nil).Fingerprint() != "" || len(retention.Fingerprint()) > 255 {
		t.Error("fingerprints")
	}
}

func TestKeepSort(t *testing.T) {
	const now = int64(1_000_000_000_000)
	retention := NewRetention(Rule{Resource: "a.g", For: time.Hour}, Rule{Resource: "b.g", For: KeepForever, Count: 2})
	old := func(id int64, key string, ago time.Duration) Old {
		return Old{ID: id, Key: "/registry/g/" + key, UntilID: id + 100, UntilAt: now - ago.Milliseconds()}
	}
	s := retention.Sort([]Old{
		old(1, "a/1", 2*time.Hour), old(2, "a/1", time.Minute), old(3, "a/2", time.Hour),
		old(4, "b/1", 99*time.Hour), old(5, "b/1", 99*time.Hour), old(6, "b/1", 0), old(7, "c/1", 0), old(8, "b/2", 0),
	}, now)
	got := fmt.Sprint(s.Counts)
	for _, o := range s.Kept {
		got += fmt.Sprintf(" +%d", o.ID)
	}
	for _, c := range s.Lost {
		got += fmt.Sprintf(" -%d..%d", c.ID, c.Until)
	}
	if want := "map[2:[/registry/g/b/2 /registry/g/b/1]] +2 +5 +6 +8 -1..101 -3..103 -4..104 -7..107"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := s.Kept[0].Expires; e != now+(59*time.Minute).Milliseconds() {
		t.Errorf("expires at %d", e)
	}
	if e := s.Kept[1].Expires; e != Never {
		t.Errorf("expires at %d", e)
	}
}
