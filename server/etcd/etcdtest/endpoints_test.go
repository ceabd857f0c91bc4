package etcdtest_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// endpoints are what tests of the protocol run on. Each call starts one with an empty key space, and
// returns HOST:PORT.
func endpoints() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{
		"etcd": func(t testing.TB) string {
			return etcdtest.StartAt(t, "--experimental-watch-progress-notify-interval=1s")
		},
	}
}

func eachEndpoint(t *testing.T, test func(*testing.T, func(testing.TB) string)) {
	t.Parallel()
	for name, endpoint := range endpoints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, endpoint)
		})
	}
}
