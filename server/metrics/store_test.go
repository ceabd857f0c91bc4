package metrics

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestStore(t *testing.T) {
	m := New()
	m.Register(Store{func() sqlstore.Stats {
		return sqlstore.Stats{
			Revision: 42, Floor: 7, AppendSeconds: 1.5,
			Entries: map[string]int{"/registry/core/configmaps/": 3, "/registry/apps/deployments/": 2},
		}
	}})
	wantLines(t, scrape(m),
		"plinth_revision 42", "plinth_compacted_revision 7", "plinth_transaction_seconds_total 1.5",
		`apiserver_storage_objects{resource="configmaps"} 3`,
		`apiserver_storage_objects{resource="deployments.apps"} 2`)
}
