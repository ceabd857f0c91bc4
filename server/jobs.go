package server

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/definitions"
)

// prepareJobs makes what works beside requests as long as the server does: custom resources,
// extension servers, the cluster's own objects, and controllers.
func (s *Server) prepareJobs() (err error) {
	client, logger := s.InProcess(nil), s.config.Log
	if s.definitions, err = definitions.New(definitions.Config{
		Client: client, Store: s.store, Kinds: s.kinds, DeleteAll: s.rest.DeleteAll, Services: s.services, Dial: s.outside.dialer.Dial, Logger: logger,
		WaitForInstances: s.waitForInstances,
	}); err != nil {
		return err
	}
	if s.apiServices, err = aggregator.NewAPIServices(aggregator.Config{
		Client: client, Store: s.store, Kinds: s.kinds, Extensions: s.extensions, Logger: logger,
	}); err != nil {
		return err
	}
	here := s.address()
	here.Identity, here.Version = s.identity, BuildInfo().Version
	if s.shared {
		s.preparePeers()
		here.Tell = s.peerAddress
	}
	times := s.times
	times.EventTTL, times.Request = s.config.EventTTL, s.config.RequestTimeout
	if s.cluster, err = cluster.New(cluster.Config{
		Client: client, Store: s.store, Here: here, Trust: s.trust, Times: times, Logger: logger,
	}); err != nil {
		return err
	}
	s.controllers, err = controllers.New(controllers.Config{
		API:         controllers.API{Client: client, As: s.InProcess, Kinds: s.kinds, Extensions: s.extensions},
		Store:       s.store,
		Credentials: controllers.Credentials{RootCA: s.pki.CA(), Tokens: s.tokens.Legacy()},
		Controllers: s.config.Controllers,
		Components:  s.config.Components,
		Identity:    s.identity,
		Logger:      logger,

		Reservations: &s.reservations,
	})
	if err != nil {
		return fmt.Errorf("start controllers: %w", err)
	}
	return nil
}

// startJobs starts the background work that prepareJobs has made.
func (s *Server) startJobs() {
	s.jobs.Go(func() { s.controllers.Run(s.jobsCtx) })
	s.goPart(clusterJob, s.cluster.Run)
	s.goPart(definitionsJob, s.definitions.Run)
	s.maintenance.start(&s.config, &s.background, s.InProcess(nil))
	s.jobs.Go(func() { s.condition.alarms.Run(s.jobsCtx) })
	s.jobs.Go(func() { s.schemas.Run(s.jobsCtx) })
	if s.fairness != nil {
		s.goPart(fairnessJob, s.fairness.Run)
	}
	s.jobs.Go(func() { s.authz.Run(s.jobsCtx, s.url) })
	s.jobs.Go(func() { s.encryption.Follow(s.jobsCtx, s.config.Log) })
	s.goPart(certificatesJob, func(ctx context.Context) {
		s.certificates.run(ctx, s.certificatesEvery, s.authenticator.Renew)
	})
	s.serving.Go(func() { s.authenticator.Run(s.ctx) })
	s.serving.Go(func() { s.certificates.serving.Run(s.ctx, s.config.Log) })
	if s.shared {
		s.jobs.Go(func() { s.tokens.KeepPublished(s.jobsCtx, s.config.Log) })
	}
	if s.peers != nil {
		s.serving.Go(func() { s.peers.Run(s.ctx) }) // as long as requests may write
	}
	if s.config.Memory > 0 {
		s.serving.Go(s.fitState)
	}
	s.serving.Go(func() { s.highWater.Keep(s.ctx, s.store.Revision, s.config.Log) })
}

// registerWait is how long a start waits for APIServices, which nothing depends on.
const registerWait = 2 * time.Second

// awaitRegistered waits until the group versions of this server have APIServices, as /readyz says.
func (s *Server) awaitRegistered(ctx context.Context) {
	select {
	case <-s.apiServices.Begun():
	case <-ctx.Done():
	case <-time.After(registerWait):
	}
}

// address is where the other machines of a cluster find this server.
func (s *Server) address() cluster.Address {
	return cluster.Address{IP: s.ip, Port: s.port(), Ranges: s.ranges}
}

// newIdentity tells this server from all others that there ever were.
func newIdentity() string {
	host, _ := os.Hostname()
	return host + "_" + string(uuid.NewUUID())
}
