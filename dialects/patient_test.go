package dialects_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// A database that nobody serves is tried until the time is over, not until the next pause would be too long.
func TestOpenWithin(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for _, dsn := range []string{"postgres://u@" + address + "/d", "mysql://u@" + address + "/d"} {
		const timeout = 1100 * time.Millisecond // the pauses before are 0.1, 0.2 and 0.4 s
		begun, waits := time.Now(), 0
		_, err := dialects.OpenWithin(t.Context(), dsn, dialects.Options{}, timeout, func(error, time.Time) { waits++ })
		if !errors.Is(err, changelog.ErrUnavailable) || !errors.Is(err, dialects.ErrGaveUp) || !strings.HasSuffix(err.Error(), "; gave up after 1.1s") || waits == 0 {
			t.Errorf("%s: after %d pauses: %v", dsn, waits, err)
		}
		if took := time.Since(begun); took < timeout {
			t.Errorf("%s: gave up after %v", dsn, took)
		}
		_, err = dialects.OpenWithin(t.Context(), dsn, dialects.Options{}, 0, nil)
		if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, dialects.ErrGaveUp) {
			t.Errorf("%s: without a wait: %v", dsn, err)
		}
	}
}
