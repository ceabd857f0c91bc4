package dbserver

import (
	"errors"
	"fmt"
	"path/filepath"
)

var errRunning = errors.New("the server is running")

// Save keeps a copy of all databases, instead of the one that is kept. The server is stopped.
func (s *Server) Save() error { return s.copyData("data", "saved") }

// Restore brings all databases back to what Save has kept. The server is stopped.
func (s *Server) Restore() error { return s.copyData("saved", "data") }

func (s *Server) copyData(from, to string) error {
	if s.cmd != nil {
		return fmt.Errorf("copy the data of %s: %w", s.kind.name, errRunning)
	}
	from, to = filepath.Join(s.dir, from), filepath.Join(s.dir, to)
	if err := s.run("rm", "-rf", to); err != nil {
		return err
	}
	return s.run("cp", "-a", from, to)
}
