//go:build !linux

package etcd

import "net"

// taken returns 0: the system does not tell how much a client has taken.
func taken(net.Conn) uint64 { return 0 }
