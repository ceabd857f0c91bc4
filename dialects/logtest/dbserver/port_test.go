package dbserver

import (
	"net"
	"strconv"
	"testing"
)

// A port is handed out once as long as the process runs that has it, whether or not somebody listens there.
func TestFreePort(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if free, err := reserve(port); free || err != nil {
		t.Errorf("port %d is free a second time, %v", port, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, text, _ := net.SplitHostPort(l.Addr().String())
	if text != strconv.Itoa(port) {
		t.Errorf("it listens on %s, not on %d", text, port)
	}
}
