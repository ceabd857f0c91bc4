package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"
)

// InProcess returns a client configuration whose requests go straight to the server's
// handler, without sockets and TLS. Their user is who; nil stands for the
// server itself, system:apiserver in group system:masters, for controllers inside. Warnings,
// such as that of a deprecated version, are for people who write requests: the server itself
// gets none.
func (s *Server) InProcess(who user.Info) *clientrest.Config {
	var warnings clientrest.WarningHandler
	if who == nil {
		warnings = clientrest.NoWarnings{}
		who = &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	}
	return &clientrest.Config{
		Host:           "http://plinth.invalid",
		UserAgent:      "plinth/" + Release(), // manager of what plinth writes
		QPS:            -1,
		WarningHandler: warnings,
		Transport:      &inProcess{handler: func() http.Handler { return s.guard }, ctx: s.ctx, who: who},
	}
}
