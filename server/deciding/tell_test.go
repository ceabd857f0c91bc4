package deciding_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/sqlstore"
)

func TestTell(t *testing.T) {
	const quota, policy = "/registry/core/resourcequotas/default/q", "/registry/admissionregistration.k8s.io/validatingadmissionpolicies/p"
	lost := func(key string) *sqlstore.Unreadable {
		return &sqlstore.Unreadable{Key: key, Err: errors.New("no key")}
	}
	broken := &sqlstore.Unreadable{Key: "/registry/core/limitranges/default/l", Err: sqlstore.ErrUndecodable}
	var many []*sqlstore.Unreadable
	for i := range 30 {
		many = append(many, lost(fmt.Sprintf("/registry/rbac.authorization.k8s.io/clusterroles/r%02d", i)))
	}
	var log apitest.Lines
	var teller deciding.Teller
	for _, step := range []struct {
		name    string
		objects []*sqlstore.Unreadable
		lines   int // in all
		key     string
	}{
		{"none", nil, 0, ""},
		{"a damaged one, which the store tells", []*sqlstore.Unreadable{broken}, 0, ""},
		{"one", []*sqlstore.Unreadable{lost(quota)}, 1, `objects=1 keys=` + quota},
		{"the same", []*sqlstore.Unreadable{lost(quota), broken}, 1, quota},
		{"another beside it", []*sqlstore.Unreadable{lost(policy), lost(quota)}, 2, `objects=1 keys=` + policy},
		{"none any more", nil, 2, ""},
		{"the first again", []*sqlstore.Unreadable{lost(quota)}, 3, quota},
		{"many, and one of another resource", append(many, lost(policy)), 5, "objects=30 "},
	} {
		teller.Tell(log.Log(), step.objects)
		if got := log.Count("cannot be decrypted"); got != step.lines {
			t.Errorf("%s: %d lines, want %d: %s", step.name, got, step.lines, log.All())
		}
		if log.Count(step.key) == 0 {
			t.Errorf("%s: the log has no %q: %s", step.name, step.key, log.All())
		}
	}
	if log.Count("clusterroles/r19") != 1 || log.Count("clusterroles/r20") != 0 {
		t.Errorf("a record does not have 20 keys: %s", log.All())
	}
}
