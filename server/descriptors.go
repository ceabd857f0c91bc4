package server

import (
	"syscall"
)

// otherFiles is how many files a server may have open in addition to the connections of its clients: those of the
// database, of backups and logs, and connections to webhooks, extension servers and kubelets.
const otherFiles = 256

// fitConnections returns how many connections of clients may be open where a process may have so many files
// open: no more than leave room for what else the server opens.
func fitConnections(most int, files uint64) int {
	if most <= 0 || files >= uint64(most)+otherFiles {
		return most
	}
	reserved := min(otherFiles, files/2)
	return max(1, int(files-reserved))
}

// boundConnections lowers Config.MaxConnections where the process may not have so many files open: a server that
// cannot open any more could not even close idle connections in favor of new ones.
func (s *Server) boundConnections() {
	files, known := mostOpenFiles()
	if !known {
		return
	}
	most := s.config.MaxConnections
	if s.config.MaxConnections = fitConnections(most, files); s.config.MaxConnections < most {
		s.config.Log.Warn("the limit of open files (ulimit -n, or LimitNOFILE of systemd) allows fewer connections than --max-connections",
			"max-connections", most, "open files", files, "connections", s.config.MaxConnections, "needed", most+otherFiles)
	}
}

// mostOpenFiles returns how many files the process may have open.
func mostOpenFiles() (most uint64, known bool) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil
}
