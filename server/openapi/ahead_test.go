package openapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plinth-io/plinth/server/openapi"
)

// TestBuiltAhead: when definitions have settled, their documents are built before anybody asks. Afterwards only
// documents of changed definitions are built, once after a series of changes. The clock is the bubble's.
func TestBuiltAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, crds := suite(t, 3)
		for _, crd := range crds {
			d.put(crd)
		}
		o := openapi.New(d.kinds)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			o.Run(ctx)
			close(ended)
		}()
		counts := func(when string, want ...int64) {
			t.Helper()
			for i, crd := range crds {
				if got := d.now[crd.Name].reads.Load(); got != want[i] {
					t.Errorf("%s: %s was read %d times, want %d", when, crd.Name, got, want[i])
				}
			}
		}
		ask := func() {
			t.Helper()
			for i := range crds {
				answer := httptest.NewRecorder()
				o.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/openapi/v3/apis/group%03d.example.com/v1", i), nil))
				if answer.Code != http.StatusOK {
					t.Errorf("document %d: %d", i, answer.Code)
				}
			}
		}
		counts("at once", 0, 0, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		counts("a minute later", 1, 1, 1)
		ask()
		counts("after requests", 1, 1, 1)
		for range 20 {
			crds[1].Generation++
			d.put(crds[1])
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		counts("after changes", 1, 2, 1)
		ask()
		counts("after changes and requests", 1, 2, 1)
		stop()
		<-ended
	})
}
