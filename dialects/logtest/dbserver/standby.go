package dbserver

import (
	"os"
	"path/filepath"
)

// StandBy makes a Postgres server that is stopped come back as a standby, which is read-only until somebody
// calls pg_promote().
func (s *Server) StandBy() error {
	return os.WriteFile(filepath.Join(s.dir, "data", "standby.signal"), nil, 0o600)
}
