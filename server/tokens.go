package server

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/server/tokens"
)

func (s *Server) openTokens(ctx context.Context) (err error) {
	s.tokens, err = tokens.Open(ctx, s.config.Tokens, s.pki.SigningKey, s.store, s.shared, s.InProcess(nil))
	if err != nil {
		return fmt.Errorf("open tokens: %w", err)
	}
	return nil
}

// issuer are the paths at which those who verify tokens themselves ask for the keys. They
// are there if the issuer is a URL that they can ask, as in upstream.
func (s *Server) issuer() map[string]echo.HandlerFunc {
	if _, _, err := s.tokens.Documents(s.host()); err != nil {
		return nil
	}
	return map[string]echo.HandlerFunc{
		serviceaccount.OpenIDConfigPath: s.issuerConfig,
		serviceaccount.JWKSPath:         s.issuerKeys,
	}
}

func (s *Server) issuerConfig(c echo.Context) error {
	config, _, err := s.tokens.Documents(s.host())
	if err != nil {
		return err
	}
	return serveDocument(c, config, "application/json")
}

func (s *Server) issuerKeys(c echo.Context) error {
	_, keys, err := s.tokens.Documents(s.host())
	if err != nil {
		return err
	}
	return serveDocument(c, keys, "application/jwk-set+json")
}

func serveDocument(c echo.Context, d tokens.Document, mediaType string) error {
	if err := rest.Routed(c.Request(), mediaType); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(d.JSON)))
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(d.MaxAge))
	_, _ = c.Response().Write(d.JSON) // a client that is gone is nobody's error
	return nil
}

// host is where clients find this server: HOST:PORT.
func (s *Server) host() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}
	return u.Host
}
