package dialects_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// No server listens on port 1. The error says that opening may be tried again.
func TestOpenUnreachable(t *testing.T) {
	for _, dsn := range []string{"postgres://u:s3cret@127.0.0.1:1/d", "mysql://u:s3cret@127.0.0.1:1/d"} {
		_, err := dialects.Open(context.Background(), dsn, dialects.Options{})
		if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrClosed) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("open %s: %v", dsn[:5], err)
		}
		if n := strings.Count(err.Error(), "connection refused"); n != 1 {
			t.Errorf("open %s: it says %d times that nobody listens: %v", dsn[:5], n, err)
		}
	}
}
