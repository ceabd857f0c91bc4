package authn

import (
	"crypto/x509"
	"errors"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Ownership says what a client's certificate is to the server itself.
type Ownership int

const (
	// NotOwn is the certificate of somebody else.
	NotOwn Ownership = iota
	// ForOthers is one that this server, or another one on its database, shows to kubelets or extension
	// servers. Whoever comes with it is a server whose request was led back to it, so it names nobody.
	ForOthers
	// ForServers is one that servers on the same database show to each other.
	ForServers
)

// errForOthers is why a certificate with the Ownership ForOthers lets nobody in.
var errForOthers = errors.New("the client certificate is one that servers show to kubelets or extension servers, and no user's: something leads their requests back to them")

// server is another server on the same database. It is no user: rights for all who are authenticated are
// not for it, and nobody can become it by a name.
var server user.Info = &user.DefaultInfo{Name: "plinth-server"}

// IsServer tells whether a request comes from another server on the same database.
func IsServer(who user.Info) bool { return who == server }

// ownership is that of a certificate that trusted authorities have signed.
func (a *Authenticator) ownership(leaf *x509.Certificate) Ownership {
	if a.owns == nil {
		return NotOwn
	}
	return a.owns(leaf)
}
