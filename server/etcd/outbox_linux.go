package etcd

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// taken returns how many bytes the other end of a TCP connection has acknowledged; 0 for other connections,
// and for closed ones.
func taken(c net.Conn) (bytes uint64) {
	its, ok := inmost(c).(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := its.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = info.Bytes_acked
		}
	})
	return bytes
}
