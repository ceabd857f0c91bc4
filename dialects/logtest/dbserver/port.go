package dbserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// FreePort returns a port of the loopback interface that nobody uses, for a server that listens there
// later, or again and again. The port is below those that systems give to connections and to
// listeners without a port of their own: a neighbour does not get it meanwhile.
func FreePort() (int, error) {
	for {
		port := 12000 + rand.IntN(18000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, err
		}
	}
}
