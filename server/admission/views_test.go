package admission_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// A configuration is in effect for every write that begins after it was stored, and none
// after it was deleted, whatever else is going on.
func TestConfigurationsChange(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, w *webhooks) {
		var others sync.WaitGroup
		defer others.Wait()
		stop := make(chan struct{})
		defer close(stop)
		for i := range 2 {
			others.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					body := cm(fmt.Sprintf("other-%d-%d", i, n), "")
					if code, answer, _ := w.send("POST", maps, body); code != http.StatusCreated && code != http.StatusBadRequest {
						t.Errorf("%d %s", code, answer)
						return
					}
				}
			})
		}
		for i := range 6 {
			w.configure([]hook{{mutating: i%2 == 0, answer: deny("")}})
			if code, answer, _ := w.send("POST", maps+"?dryRun=All", cm("a", "")); code != http.StatusBadRequest {
				t.Errorf("change %d: a write with a webhook that refuses it: %d %s", i, code, answer)
			}
			w.configure(nil)
			if code, answer, _ := w.send("POST", maps+"?dryRun=All", cm("a", "")); code != http.StatusCreated {
				t.Errorf("change %d: a write without webhooks: %d %s", i, code, answer)
			}
		}
	})
}

// What one replica stored is in effect on the others a moment later.
func TestConfigurationOfOtherReplica(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		one, other := newWebhooks(t, dsn), newWebhooks(t, dsn)
		until := func(want int) {
			t.Helper()
			for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				code, answer, _ := other.send("POST", maps+"?dryRun=All", cm("a", ""))
				if code == want {
					return
				} else if time.Since(begun) > 2*time.Minute {
					t.Fatalf("got %d %s, want %d", code, answer, want)
				}
			}
		}
		until(http.StatusCreated)
		one.configure([]hook{{answer: deny("")}})
		until(http.StatusBadRequest)
		one.configure(nil)
		until(http.StatusCreated)
	})
}
