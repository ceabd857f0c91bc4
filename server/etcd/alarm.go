package etcd

// noSpace says whether the alarm NOSPACE is raised. The service of alarms replaces this stub.
func (s *Server) noSpace() bool { return false }
