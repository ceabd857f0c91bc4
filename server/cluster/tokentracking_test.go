package cluster_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/apitest"
)

// A ConfigMap tells kube-controller-manager since when the server records the use of tokens from
// secrets. A valid date in the ConfigMap stays, and anything else is replaced by today's date.
func TestTokenTracking(t *testing.T) {
	c := apitest.Open(t)
	maps := c.Client.CoreV1().ConfigMaps("kube-system")
	const name = "kube-apiserver-legacy-service-account-token-tracking"
	before := time.Now().UTC().Format(time.DateOnly)
	since := func() string {
		t.Helper()
		bootstrap(t, c, here)
		m, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Data["since"]
	}
	isToday := func(day string) bool { return day == before || day == time.Now().UTC().Format(time.DateOnly) }
	if day := since(); !isToday(day) {
		t.Errorf("since %q", day)
	}
	for value, stays := range map[string]bool{`{"since":"2020-02-03"}`: true, `{"since":"2020-02-30"}`: false, `null`: false} {
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":`+value+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if day := since(); isToday(day) == stays {
			t.Errorf("with %s: since %q", value, day)
		}
	}
	if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if day := since(); !isToday(day) {
		t.Errorf("after its deletion: since %q", day)
	}
}
