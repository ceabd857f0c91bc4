package logtest

import (
	"context"
	"maps"
	"testing"
)

// TestMarks writes, overwrites and removes marks, and finds them in the next Open.
func TestMarks(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		ctx := context.Background()
		l := db.open(t)
		id := l.ClusterID()
		for _, marks := range []map[string]string{
			{"copying": "a", "origin/" + id: "17"},
			{"copying": "", "other": "x", "gone": ""},
			{"other": "y"},
		} {
			if err := l.SetMarks(ctx, marks); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]string{"origin/" + id: "17", "other": "y"}
		got, err := l.Marks(ctx)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("marks are %v, %v; want %v", got, err, want)
		}
	})
}
