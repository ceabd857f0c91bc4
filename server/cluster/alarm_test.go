package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/server/apitest"
)

// Each beginning and each end of an alarm is an event.
func TestTell(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, here)
	k := open(t, c, here)
	change := alarms.Change{Alarm: alarms.All[0], Since: time.Now(), Detail: "3 MiB are free"}
	for _, begins := range []bool{true, false, true} {
		change.Begins = begins
		if err := k.Tell(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	events, err := c.Client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range events.Items {
		count[e.Type+" "+e.Reason]++
		if e.Reason == "DiskLow" && !strings.HasSuffix(e.Message, ": 3 MiB are free") {
			t.Errorf("note %q", e.Message)
		}
	}
	if count[corev1.EventTypeWarning+" DiskLow"] != 2 || count[corev1.EventTypeNormal+" DiskLowEnded"] != 1 {
		t.Errorf("events %v", count)
	}
}
