// Package server is the life of a plinth process: it puts the parts together, listens,
// starts background work, and stops without dropping a request.
//
// A program that wants a Kubernetes API of its own makes a Config, calls New and Open,
// and takes a client-go configuration from the Server; tests take servertest, which does the same.
//
// What happens to a request is in the packages below: guard leads it to a route, and rest,
// discovery, openapi and the others answer it.
package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/definitions"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/fairness"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/health"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/openapi"
	"github.com/plinth-io/plinth/server/peers"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/resolve"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/server/status"
	"github.com/plinth-io/plinth/server/tokens"
)

// Server is one plinth. Its methods are safe for concurrent use once Open has returned.
type Server struct {
	config  Config
	metrics *metrics.Metrics
	results *health.Results // of health checks
	logged  logging.Progress
	begun   time.Time
	phase
	pace
	addRoutes []func(*guard.Guard) // of tests; called before the first request, under which a router must not change

	// Set by Open in this order.
	start      *progress
	ranges     allocate.Ranges // of Services
	audit      *audit.Log      // nil: there is none
	encryption *encryption.Providers
	listening
	certificates
	database
	identity string // among the servers of a database; empty: there are no others
	tokens   *tokens.Tokens

	authenticator *authn.Authenticator

	services    *resolve.Resolver
	authz       *authz.Authorizer
	extensions  *aggregator.Services
	kinds       *kind.Registry
	outside     outside
	plugins     *admission.Plugins
	rest        *rest.API
	fairness    *fairness.Controller // nil: there is none
	guard       *guard.Guard         // the handler of all requests
	schemas     *openapi.OpenAPI
	maintenance maintenance
	checks      *checks
	condition   *condition
	definitions *definitions.Definitions
	apiServices *aggregator.APIServices
	cluster     *cluster.Cluster
	peers       *peers.Peers // nil: the database has no other servers
	controllers *controllers.Manager
	http        *http.Server

	endDebugging func()

	reservations admission.Reservations // of quotas

	ctx     context.Context // of all requests; ended when Shutdown gives up on them
	cancel  context.CancelFunc
	serving sync.WaitGroup // the accept loop and what goes on as long as requests do

	background

	stop stop
}

// phase is how far the life of a server has come.
type phase struct {
	ready    atomic.Bool // bootstrap is done
	stopping atomic.Bool // Shutdown has begun
}

// pace has the intervals of recurring work. Tests shorten them.
type pace struct {
	times     cluster.Times
	tellEvery time.Duration
	// waitForInstances is of definitions.Config.
	waitForInstances time.Duration
	// drainGrace is how long a stopping server waits for clients that neither read nor send.
	drainGrace time.Duration

	certificateLives  pki.Lives
	certificatesEvery time.Duration // how often it is looked whether one must be renewed or taken up
}

// stop is the outcome of Shutdown.
type stop struct {
	once   sync.Once
	cutOff int64 // requests that ran when Shutdown gave up on them
	err    error
}

// New returns a server that has not started. It does no I/O.
func New(config Config) *Server {
	s := &Server{config: config.withDefaults(), metrics: metrics.New(), results: health.NewResults(), begun: time.Now()}
	s.config.Log = slog.New(s.logged.Watch(s.config.Log.Handler()))
	s.tellEvery, s.drainGrace = tellEvery, guard.DrainGrace
	s.certificateLives, s.certificatesEvery = pki.DefaultLives, certificatesEvery
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.background.logger = s.config.Log
	s.jobsCtx, s.stopJobs = context.WithCancel(s.ctx)
	return s
}

// URL returns where the server listens, with its real port: https://127.0.0.1:6443.
func (s *Server) URL() string { return s.url }

// RESTConfig returns the client configuration of the admin.
func (s *Server) RESTConfig() *clientrest.Config { return s.pki.RESTConfig(s.url) }

// Kubeconfig returns the admin's kubeconfig.
func (s *Server) Kubeconfig() ([]byte, error) { return s.pki.Kubeconfig(s.url) }

// KubeconfigPath returns the absolute path of the kubeconfig, empty without a DataDir.
func (s *Server) KubeconfigPath() string { return absolute(s.certificates.kubeconfig) }

// replica is this server among those of its database.
func (s *Server) replica() status.Replica {
	host, _ := os.Hostname()
	self := status.Replica{Name: cmp.Or(s.identity, host), Version: BuildInfo().Version, Since: s.begun.UTC()}
	if ip := s.address().IP; ip != nil {
		self.Address = ip.String()
	}
	return self
}

// otherAddresses are where clients find this server besides where it listens, and where they find the others
// on its database.
func (s *Server) otherAddresses() (all []netip.AddrPort) {
	for _, ip := range s.ranges.First() {
		if at, ok := netip.AddrFromSlice(ip); ok {
			all = append(all, netip.AddrPortFrom(at.Unmap(), 443))
		}
	}
	for _, other := range cluster.Others(s.store, s.identity) {
		all = append(all, other.Addresses(uint16(s.port()))...)
	}
	return all
}
