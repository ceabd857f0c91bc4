package dbserver

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Freeze stops all processes of the server where they stand. It goes on accepting
// connections, since the kernel does that, and answers nobody, like a server whose disk
// hangs.
func (s *Server) Freeze() error { return s.signalAll(syscall.SIGSTOP) }

// Thaw lets a frozen server go on as if nothing had been.
func (s *Server) Thaw() error { return s.signalAll(syscall.SIGCONT) }

// signalAll signals the server and then its children, of which it makes none meanwhile.
// Postgres has one for each connection, in process groups of their own.
func (s *Server) signalAll(sig syscall.Signal) error {
	if s.cmd == nil {
		return errors.New("server is not running")
	}
	pid := s.cmd.Process.Pid
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("signal %s: %w", s.kind.name, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return fmt.Errorf("find the processes of %s: %w", s.kind.name, err)
	}
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal a process of %s: %w", s.kind.name, err)
		}
	}
	return nil
}
