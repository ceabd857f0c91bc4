package refused

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestHost(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "db.example", IsNotFound: true}
	err := Host(fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Net: "tcp", Err: unknown}))
	want := `host "db.example" is not known; write another in the DSN`
	if !errors.Is(err, Err) || err.Error() != want {
		t.Errorf("unknown name: %v, want %s", err, want)
	}
	// A name server that does not answer may do so later.
	if err := Host(&net.DNSError{Err: "server misbehaving", Name: "db.example", IsTemporary: true}); err != nil {
		t.Errorf("name server in trouble: %v", err)
	}
}
