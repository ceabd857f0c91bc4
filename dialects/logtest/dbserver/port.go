package dbserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// reserved are UDP sockets with the numbers that FreePort has returned. They stay open until the process ends.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreePort returns a port of the loopback interface that nobody uses, for a server that listens there
// later, or again and again. The port is below those that systems give to connections and to
// listeners without a port of their own: a neighbour does not get it meanwhile. Nor does another call, in this
// process or another, as long as this process runs: the port of UDP with the same number is taken.
func FreePort() (int, error) {
	for {
		port := 12000 + rand.IntN(18000)
		free, err := reserve(port)
		if free || err != nil {
			return port, err
		}
	}
}

// reserve tells whether a port was free, which is reserved then.
func reserve(port int) (free bool, err error) {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	socket, err := net.ListenPacket("udp4", address)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp4", address); err == nil {
			err = l.Close()
		} else {
			_ = socket.Close()
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return false, nil
	case err != nil:
		return false, err
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.sockets = append(reserved.sockets, socket)
	return true, nil
}
