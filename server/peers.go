package server

import (
	"errors"
	"net"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/peers"
	"github.com/plinth-io/plinth/server/response"
)

// preparePeers makes what tells other servers on the database that this one has written.
func (s *Server) preparePeers() {
	s.peers = peers.New(peers.Config{
		Store: s.store, Identity: s.identity, Logger: s.config.Log,
		Transport: peers.Transport(s.pki.CA(), s.pki.Peer),
	})
}

// peerAddress is where other servers tell this one that they have written: where it listens, or is said to be
// found; empty if the database tells it.
func (s *Server) peerAddress() string {
	if !s.store.Others().Polls() {
		return ""
	}
	ip := s.config.AdvertiseAddress
	if ip == nil || ip.IsUnspecified() {
		if ip = s.own(); ip.IsUnspecified() {
			ip = s.ip
		}
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(s.port()))
}

// servePeers answers other servers that say that they have written.
func (s *Server) servePeers(x *guard.Call) error {
	switch r := x.Request(); {
	case s.peers == nil:
		return response.NotFound()
	case r.Method != http.MethodPost:
		return response.MethodNotAllowed()
	default:
		err := s.peers.Hear(r.URL.Query())
		if errors.Is(err, peers.ErrNotMe) {
			return response.NotFound()
		}
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		x.Response().WriteHeader(http.StatusNoContent)
		return nil
	}
}
