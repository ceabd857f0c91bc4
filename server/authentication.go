package server

import (
	"slices"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/pki"
)

// openAuthenticator makes what finds out who sends a request.
func (s *Server) openAuthenticator() (err error) {
	options := s.config.Authentication
	if options == nil {
		options = authn.NewOptions()
	}
	options.ApplyAuthorization(s.config.Authorization) // nobody is anonymous where all is allowed
	s.authenticator, err = authn.Open(s.ctx, authn.Config{
		Options:   options,
		Roots:     s.pki.ClientCAs,
		Owns:      s.outside.owns,
		Audiences: s.tokens.Audiences(),
		Issuers:   s.tokens.Issuers(),
		Tokens:    s.tokens.With,
		Store:     s.store,
		Identity:  s.host(),
		Logger:    s.config.Log,
	})
	if err != nil {
		return configError("authentication: %w", err)
	}
	return nil
}

// trust returns what extension servers need to know to trust this server, and whom this server
// trusts.
func (s *Server) trust() (cluster.Trust, error) {
	ca, err := s.pki.FrontProxyCA()
	t := cluster.Trust{
		ClientCA: slices.Concat(s.pki.CA(), s.authenticator.ClientCAs()),
		ProxyCA:  slices.Concat(ca, s.authenticator.ProxyCAs()), ProxyNames: []string{pki.FrontProxyName},
	}
	if o := s.authenticator.ProxyHeaders(); o != nil {
		t.ProxyNames = append(t.ProxyNames, o.AllowedNames...)
		t.UsernameHeaders, t.UIDHeaders, t.GroupHeaders, t.ExtraHeaderPrefixes = o.UsernameHeaders, o.UIDHeaders, o.GroupHeaders, o.ExtraHeaderPrefixes
	}
	return t, err
}
