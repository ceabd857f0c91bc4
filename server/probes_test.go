package server

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

// A reason is told, but not where the database is or who uses it.
func TestStorageReason(t *testing.T) {
	secret := errors.New("user=ada host=db.example.com password=s3cret")
	refused := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: syscall.ECONNREFUSED}
	tests := []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w: %w", sqlstore.ErrUnavailable, secret, refused), "database unavailable: connection refused"},
		{fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, secret), "database unavailable; the log says more"},
		{secret, "database error; the log says more"},
	}
	for _, tt := range tests {
		if got := storageReason(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
