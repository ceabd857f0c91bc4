package dbserver

import (
	"os"
	"path/filepath"
)

// KeepEnv names a directory that all users may write to. In it is kept what a new server begins with, so that it is
// made once and copied for all others, also those of other processes: initdb takes ten times as long as a copy.
const KeepEnv = "PLINTH_TEST_NEW_DATA"

// create makes the data of a new server.
func (s *Server) create() error {
	dir := os.Getenv(KeepEnv)
	if dir == "" {
		return s.kind.create(s)
	}
	data, kept := filepath.Join(s.dir, "data"), filepath.Join(dir, s.kind.name)
	if _, err := os.Stat(kept); err == nil {
		return s.run("cp", "-a", kept, data)
	}
	if err := s.kind.create(s); err != nil {
		return err
	}
	if _, err := os.Stat(data); os.IsNotExist(err) { // PgBouncer has none
		return nil
	}
	copied := filepath.Join(dir, filepath.Base(s.dir))
	if err := s.run("cp", "-a", data, copied); err != nil {
		return err
	}
	if os.Rename(copied, kept) != nil { // another process was first
		return os.RemoveAll(copied)
	}
	return nil
}
