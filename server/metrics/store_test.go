package metrics

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestStore(t *testing.T) {
	m := New()
	m.Register(Store{Lags: func() Lags { return Lags{Reads: 1, Compaction: 2, Watcher: 3} }, Stats: func() sqlstore.Stats {
		return sqlstore.Stats{
			Revision: 42, Floor: 7, AppendSeconds: 1.5, Outages: 4, HeadSeconds: 0.5, Appends: [len(sqlstore.AppendBounds) + 1]int64{3, 2, len(sqlstore.AppendBounds): 1},
			Entries: map[string]int{"/registry/core/configmaps/": 3, "/registry/apps/deployments/": 2},
		}
	}})
	wantLines(t, scrape(m),
		"plinth_revision 42", "plinth_compacted_revision 7", "plinth_transaction_seconds_total 1.5",
		"plinth_replica_lag_seconds 1", "plinth_compaction_lag_seconds 2", "plinth_watcher_lag_seconds 3",
		"plinth_database_outages_total 4", "plinth_head_read_seconds_total 0.5",
		`plinth_transaction_duration_seconds_bucket{le="0.002"} 5`, `plinth_transaction_duration_seconds_bucket{le="+Inf"} 6`, "plinth_transaction_duration_seconds_sum 1.5",
		`apiserver_storage_objects{resource="configmaps"} 3`,
		`apiserver_storage_objects{resource="deployments.apps"} 2`)
}
