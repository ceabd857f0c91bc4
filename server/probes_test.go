package server

import (
	"errors"
	"fmt"
	"net"
	"strings"
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

func TestReadyzSaysWhy(t *testing.T) {
	s := start(t, Config{})
	s.ready.Store(false)
	_, _, body := do(t, admin(t, s), "GET", s.URL()+"/readyz", "")
	if !strings.Contains(body, "[-]bootstrap failed: not finished\n") {
		t.Errorf("/readyz says %s", body)
	}
	s.ready.Store(true)
}
