package history_test

import (
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/history"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestWhyNotKept: who looks too far back is told what has kept no more, and what to write.
func TestWhyNotKept(t *testing.T) {
	day := changelog.Rule{Resource: "*", For: 24 * time.Hour}
	none := changelog.Rule{Resource: "secrets"}
	many := []changelog.Rule{day}
	for _, resource := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, changelog.Rule{Resource: resource, For: time.Hour})
	}
	for _, c := range []struct {
		name     string
		reach    sqlstore.Reach
		resource string
		want     string
	}{
		{"without rules", sqlstore.Reach{History: time.Minute}, "pods",
			": they stay for 1m0s (--history), and longer by a rule such as --keep 'pods=7d' of plinth serve"},
		{"all without rules", sqlstore.Reach{History: time.Minute}, "*",
			": they stay for 1m0s (--history), and longer by a rule such as --keep '*=7d' of plinth serve"},
		{"by a rule", sqlstore.Reach{Kept: true, Rule: day, Rules: []changelog.Rule{day}}, "pods",
			": they stay by the rule *=1d of --keep"},
		{"by a rule with a bound", sqlstore.Reach{Kept: true, Rule: day, Rules: []changelog.Rule{day}, Most: 256 << 20}, "pods",
			": they stay by the rule *=1d of --keep, as far as --keep-size (256MiB for all) has room"},
		{"a small bound", sqlstore.Reach{Kept: true, Rule: day, Rules: []changelog.Rule{day}, Most: 4000}, "pods",
			": they stay by the rule *=1d of --keep, as far as --keep-size (4000 bytes for all) has room"},
		{"excepted by a rule", sqlstore.Reach{History: time.Minute, Rules: []changelog.Rule{day, none}}, "secrets",
			": they stay for 1m0s (--history), and longer by a rule such as --keep '*=1d,secrets=7d' of plinth serve"},
		{"all with rules", sqlstore.Reach{Rules: []changelog.Rule{day, none}}, "*", " but by the rules of --keep: *=1d,secrets=0"},
		{"among many rules", sqlstore.Reach{History: time.Minute, Rules: many}, "secrets",
			": they stay for 1m0s (--history), and longer by a rule such as secrets=7d among those of --keep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := history.WhyNotKept(&c.reach, c.resource); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
