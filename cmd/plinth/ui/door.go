package ui

import (
	"net/http"

	clientrest "k8s.io/client-go/rest"
)

// Door lets visitors in.
type Door interface {
	// guard refuses requests that no browser of a visitor sends, such as those with a foreign Host.
	guard(r *http.Request) error
	// enter returns with what credentials the requests of a visitor go on, and a key that is the same for the same
	// ones. The error of somebody who is to sign in first is errSignIn.
	enter(r *http.Request) (key string, config *clientrest.Config, err error)
	// routes adds the paths of the door itself.
	routes(s *Server)
	// welcome shows somebody who is not known how to get in; false if there is nothing to show. err says why he is not.
	welcome(w http.ResponseWriter, r *http.Request, err error) bool
	// server is the address of the API, for people.
	server(r *http.Request) string
	// leave says where a visitor signs out; nothing if he cannot.
	leave() string
}
