package builtin_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestColumns renders a random object of each kind.
func TestColumns(t *testing.T) {
	without := []string{"limitranges", "csistoragecapacities", "roles", "clusterroles"}
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil || k.Observed != nil {
			continue
		}
		obj := randomObject(t, k, 1)
		table, err := k.Table.ConvertToTable(t.Context(), obj, &metav1.TableOptions{})
		if err != nil {
			t.Errorf("%s: %v", k.Resource, err)
			continue
		}
		// Upstream's ipaddresses have an age, but no column for it; kubectl ignores it.
		if len(table.Rows) != 1 || len(table.Rows[0].Cells) < len(table.ColumnDefinitions) {
			t.Errorf("%s: %d rows for one object: %v", k.Resource, len(table.Rows), table)
		}
		if own := table.ColumnDefinitions[1].Name != "Created At"; own == slices.Contains(without, k.Resource) {
			t.Errorf("%s: columns of its own: %v", k.Resource, own)
		}
	}
}
