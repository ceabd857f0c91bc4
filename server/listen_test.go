package server

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What cannot be listened on is told with what to write instead.
func TestListenErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EADDRINUSE:    "Config.Listen 127.0.0.1:443: address already in use; write another port, or 127.0.0.1:0 for a free one",
		syscall.EACCES:        "Config.Listen 127.0.0.1:443: permission denied; ports below 1024 need root or CAP_NET_BIND_SERVICE: write a higher one, such as 127.0.0.1:6443",
		syscall.EADDRNOTAVAIL: "Config.Listen 127.0.0.1:443: cannot assign requested address; write an address of this machine, or 0.0.0.0:6443",
	} {
		err := listenError("127.0.0.1:443", &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", errno)})
		if !strings.HasPrefix(err.Error(), want) || !errors.Is(err, errno) {
			t.Errorf("%v: got %v, want %s", errno, err, want)
		}
	}
}
