package server

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestCheckKeep(t *testing.T) {
	rules, err := sqlstore.ParseRules("*=7d,*.apps=1d,secrets=0,leases.coordination.k8s.io=5m,widgets.example.com=9,widgets=1h,events=1h")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkKeep(sqlstore.NewKeep(rules...)); err != nil {
		t.Error(err)
	}
}
