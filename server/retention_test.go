package server

import (
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestCheckKeep(t *testing.T) {
	rules, err := changelog.ParseRules("*=7d,*.apps=1d,secrets=0,leases.coordination.k8s.io=5m,widgets.example.com=9,widgets=1h,events=1h")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRetention(changelog.NewRetention(rules...)); err != nil {
		t.Error(err)
	}
}

// TestUnknownRules has rules that fit no resource, some of which a definition may bring.
func TestUnknownRules(t *testing.T) {
	rules, err := changelog.ParseRules("*=7d,*.core=1d,*.apps=1d,secrets=0,leases.coordination.k8s.io=5m,secretz=5,*.bogus=5d,deployments.apps.v1=5d,widgets.example.com=9")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(unknownRules(changelog.NewRetention(rules...), builtin.Kinds(builtin.Options{})))
	if want := "[*.bogus=5d deployments.apps.v1=5d secretz=5 widgets.example.com=9]"; got != want {
		t.Errorf("unknown are %s, want %s", got, want)
	}
}
