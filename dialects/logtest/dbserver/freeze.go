package dbserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Freeze stops all processes of the server where they stand. It goes on accepting
// connections, since the kernel does that, and answers nobody, like a server whose disk
// hangs. When Freeze returns they have stopped: a signal alone takes its time on a busy
// machine.
func (s *Server) Freeze() error {
	for range 2 { // the server may have made another child before it stopped
		pids, err := s.signalAll(syscall.SIGSTOP)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			awaitState(pid, "TZ")
		}
	}
	return nil
}

// Thaw lets a frozen server go on as if nothing had been.
func (s *Server) Thaw() error {
	_, err := s.signalAll(syscall.SIGCONT)
	return err
}

// awaitState waits until all threads of a process are in one of some states, such as T for stopped and Z for ended,
// or gone.
func awaitState(pid int, states string) {
	for !isIn(pid, states) {
		time.Sleep(time.Millisecond)
	}
}

func isIn(pid int, states string) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		// The state follows the name, which is in brackets and may have any in it.
		after := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if len(after) < 2 || !strings.ContainsRune(states, rune(after[1])) {
			return false
		}
	}
	return true
}

// signalAll signals the server and its children.
// Postgres has one for each connection, in process groups of their own.
func (s *Server) signalAll(sig syscall.Signal) (pids []int, err error) {
	if s.cmd == nil {
		return nil, errors.New("server is not running")
	}
	children, err := s.children() // before they lose their parent
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(s.cmd.Process.Pid, sig); err != nil {
		return nil, fmt.Errorf("signal %s: %w", s.kind.name, err)
	}
	pids = append(pids, s.cmd.Process.Pid)
	for _, child := range children {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return pids, fmt.Errorf("signal a process of %s: %w", s.kind.name, err)
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// children returns the processes that the server's first one has made.
func (s *Server) children() (pids []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.cmd.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("find the processes of %s: %w", s.kind.name, err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
