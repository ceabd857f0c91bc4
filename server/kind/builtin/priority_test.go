package builtin_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

func TestPrioritiesNameEveryGroup(t *testing.T) {
	priorities := builtin.Priorities()
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if priorities[k.Group] == 0 {
			t.Errorf("group %q has no priority", k.Group)
		}
	}
}
