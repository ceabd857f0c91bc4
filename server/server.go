// Package server puts the parts of plinth together: it listens, knows who asks, routes
// requests to the rooms that answer them, and stops without dropping any.
//
// A program that wants a Kubernetes API of its own makes a Config, calls New and Open,
// and takes a rest.Config from the Server; tests take servertest, which does the same.
package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/admission"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admit"
	"github.com/plinth-io/plinth/server/aggregate"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/auth"
	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/discovery"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/openapi"
	"github.com/plinth-io/plinth/server/resolve"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore"
)

// Server is one plinth. Its methods are safe for concurrent use once Open has returned.
type Server struct {
	config Config

	// Set by Open in this order.
	ranges      allocate.Ranges // of Services
	listener    net.Listener
	url         string
	pki         *auth.PKI
	tokens      *tokens.Tokens
	store       *sqlstore.Store
	shared      bool // other servers may serve the same database
	highWater   *highWater
	kinds       *kind.Registry
	services    *resolve.Resolver
	extensions  *aggregate.Services
	custom      *control.Definitions
	apiServices *control.APIServices
	transports  []*http.Transport // to nodes and what runs on them

	plugins   admission.ConfigProvider // what configures those of admission; nil: nothing does
	audit     *audit.Log               // nil: there is none
	authn     *auth.Authenticator
	authz     auth.Authorizer
	limits    limits
	metrics   *metrics.Metrics
	rest      *rest.API
	discovery http.Handler
	openapi   http.Handler
	handler   http.Handler
	http      *http.Server

	ready    atomic.Bool // bootstrap is done
	stopping atomic.Bool // Shutdown has begun

	ctx     context.Context // of all requests; ended when Shutdown gives up on them
	cancel  context.CancelFunc
	serving sync.WaitGroup // the accept loop and what goes on as long as requests do
	running running        // requests
	calls   calls          // the same, one by one

	jobs     sync.WaitGroup // background work that uses the API; ends with jobsCtx
	jobsCtx  context.Context
	stopJobs context.CancelFunc

	maintainEvery      time.Duration // tests shorten these
	checkReplicasEvery time.Duration

	shutdownOnce sync.Once
	shutdownErr  error
}

// New returns a server that has not started. It does no I/O.
func New(config Config) *Server {
	s := &Server{config: config.withDefaults(), metrics: metrics.New(), running: running{idle: make(chan struct{})}}
	s.calls.running = map[*call]struct{}{}
	s.maintainEvery = control.MaintainEvery
	s.checkReplicasEvery = control.CheckReplicasEvery
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.jobsCtx, s.stopJobs = context.WithCancel(s.ctx)
	s.limits.reads = limit{kind: "readOnly", most: int64(s.config.MaxReads)}
	s.limits.writes = limit{kind: "mutating", most: int64(s.config.MaxWrites)}
	return s
}

// Open starts the server; when it returns nil, /readyz answers 200. The context bounds
// the start only. An error that wraps ErrConfig says what to write instead; one that
// wraps sqlstore.ErrUnavailable, that the database cannot be reached. After an error
// nothing is left running.
func (s *Server) Open(ctx context.Context) (err error) {
	if err := s.config.check(); err != nil {
		return err
	}
	s.ranges, err = allocate.ParseRanges(s.config.ServiceClusterIPRange, s.config.ServiceNodePortRange)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	if s.plugins, err = admit.ReadConfig(s.config.AdmissionConfigFile); err != nil {
		return configError("admission configuration: %w", err)
	}
	if err := s.openAudit(); err != nil {
		return err
	}
	// As kubeadm and envtest have it; in a program that has not said otherwise before.
	capabilities.Setup(true, 0)
	var beside sync.WaitGroup
	beside.Go(builtin.ParseSchemas)
	defer beside.Wait()
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.openPKI(); err != nil {
		return err
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	if err := s.openTokens(ctx); err != nil {
		return err
	}
	if err := s.wire(); err != nil {
		return err
	}
	if s.custom, err = control.NewDefinitions(s.controllerConfig()); err != nil {
		return err
	}
	if err := s.custom.Load(ctx); err != nil {
		return fmt.Errorf("serve custom resources: %w", err)
	}
	if s.apiServices, err = control.NewAPIServices(s.controllerConfig()); err != nil {
		return err
	}
	if err := s.apiServices.Load(ctx); err != nil {
		return fmt.Errorf("serve extensions: %w", err)
	}
	s.serve()
	if err := control.Bootstrap(admit.Unasked(ctx), s.InProcess(nil), s.address()); err != nil {
		return err
	}
	// Last, because a second process on the same directory must not point clients at
	// itself before it is refused by the database.
	if err := s.writeKubeconfig(); err != nil {
		return err
	}
	if err := s.startControllers(); err != nil {
		return err
	}
	s.startJobs()
	s.ready.Store(true)
	return nil
}

// startJobs starts what goes on as long as the server does, besides controllers.
func (s *Server) startJobs() {
	s.jobs.Go(func() {
		control.Maintain(s.jobsCtx, s.InProcess(nil), s.address(), s.maintainEvery, s.config.Logf)
	})
	s.jobs.Go(func() {
		control.RepairServices(s.jobsCtx, s.controllerConfig(), control.RepairEvery, s.config.RequestTimeout)
	})
	if s.shared {
		s.jobs.Go(func() {
			control.KeepReplica(s.jobsCtx, s.InProcess(nil), s.address(), identity(), s.checkReplicasEvery, s.config.Logf)
		})
	}
	s.jobs.Go(func() { s.custom.Run(s.jobsCtx) })
	s.jobs.Go(func() { s.apiServices.Run(s.jobsCtx) })
	s.jobs.Go(func() { s.extensions.Poll(s.jobsCtx) })
	if s.config.EventTTL > 0 {
		s.jobs.Go(func() { control.ExpireEvents(s.jobsCtx, s.store, s.config.EventTTL, s.config.Logf) })
	}
	s.jobs.Go(func() {
		control.KeepTrust(s.jobsCtx, s.controllerConfig(), s.trust, s.maintainEvery)
	})
	s.jobs.Go(s.renewCertificates)
	s.jobs.Go(func() { s.giveBack(s.jobsCtx) })
	if s.shared {
		s.jobs.Go(func() { s.tokens.KeepPublished(s.jobsCtx, s.config.Logf) })
	}
	s.serving.Go(func() { s.highWater.keep(s.ctx, s.store.Revision, s.config.Logf) })
}

func (s *Server) openStore(ctx context.Context) error {
	log, err := s.openLog(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	s.shared = !log.Exclusive()
	s.highWater = newHighWater(s.config.DataDir, log.ClusterID())
	if err := s.highWater.check(ctx, log, s.config.Logf); err != nil {
		return errors.Join(fmt.Errorf("compare the database with what was served: %w", err), log.Close())
	}
	s.store, err = sqlstore.Open(ctx, log, sqlstore.Options{History: s.config.History, Logf: s.config.Logf})
	if err != nil {
		return errors.Join(fmt.Errorf("open database: %w", err), log.Close())
	}
	return nil
}

// openLog opens the database. One that is not there yet, as when both are started
// together, is waited for.
func (s *Server) openLog(ctx context.Context) (sqlstore.Log, error) {
	end := time.Now().Add(s.config.DatabaseTimeout)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		log, err := dialects.Open(ctx, s.config.DSN, dialects.Options{Logf: s.config.Logf})
		if !errors.Is(err, sqlstore.ErrUnavailable) || ctx.Err() != nil || time.Now().Add(pause).After(end) {
			return log, err
		}
		if pause == 100*time.Millisecond {
			s.config.Logf("waiting at most %v for the database: %v", s.config.DatabaseTimeout, err)
		}
		sleep(ctx, pause)
	}
}

// wire makes the parts that answer requests.
func (s *Server) wire() error {
	enabled, err := builtin.ParseEnabled(s.config.RuntimeConfig)
	if err != nil {
		return configError("runtime config: %w", err)
	}
	reach, err := s.reach()
	if err != nil {
		return err
	}
	s.services = resolve.New(s.store, s.url)
	s.extensions = aggregate.New(s.services, s.pki.FrontProxy)
	s.authn = auth.NewAuthenticator(s.pki.ClientCAs, s.tokens)
	s.kinds = kind.NewRegistry(builtin.Priorities())
	removed, err := enabled.Removed(s.config.ServeRemovedAPIs)
	if err != nil {
		return configError("%w", err)
	}
	s.kinds.Replace(nil, builtin.Kinds(builtin.Options{
		Authorizer: s.authz, Rules: s.authz, Registry: s.kinds, Store: s.store, Client: s.InProcess(nil),
		Authenticator: s.authn, Audiences: s.tokens.Audiences(), Tokens: s.tokens, Enabled: enabled,
		Removed: removed, Reach: reach, Services: &s.ranges, Database: s.databaseHealth,
	}))
	admission, err := s.admission()
	if err != nil {
		return err
	}
	s.rest = rest.New(s.store, s.kinds, rest.Options{
		Admission: admission,
		Audited:   s.audit != nil,
		Untracked: s.config.Untracked,

		Deprecated: s.metrics.Deprecated,
	})
	s.discovery = discovery.New(s.kinds, s.extensions, s.otherPaths()...)
	s.openapi = openapi.New(s.kinds, slices.Collect(maps.Keys(s.issuer()))...)
	s.metrics.Register(metrics.Store{Stats: s.store.Stats})
	if s.audit != nil {
		s.metrics.Register(s.audit.Collectors()...)
		s.metrics.Gather(audit.Metrics())
	}
	s.metrics.Inflight(s.limits.reads.kind, s.limits.reads.running.Load)
	s.metrics.Inflight(s.limits.writes.kind, s.limits.writes.running.Load)
	s.handler = s.routes()
	return nil
}

// admission is the plugins that are asked about each write.
func (s *Server) admission() (admission.Interface, error) {
	plugins, err := admit.New(admit.Options{
		WebhookOptions: admit.WebhookOptions{
			Store: s.store, Client: s.InProcess(nil), Services: s.services, Self: s.RESTConfig(), Authorizer: s.authz,
		},
		Mapper: control.NewMapper(s.kinds), Stop: s.ctx.Done(),
		Enable: s.config.EnableAdmissionPlugins, Disable: s.config.DisableAdmissionPlugins, Config: s.plugins,
	})
	if err != nil {
		return nil, configError("%w", err)
	}
	return s.auditAdmission(plugins), nil
}

func (s *Server) controllerConfig() control.Config {
	return control.Config{
		Client:        s.InProcess(nil),
		Store:         s.store,
		Kinds:         s.kinds,
		Extensions:    s.extensions,
		DeleteAll:     s.rest.DeleteAll,
		Services:      s.services,
		RootCA:        s.pki.CA(),
		AccountTokens: s.tokens.Legacy(),
		Ports:         allocate.NewPorts(s.store, s.ranges.NodePorts),
		Controllers:   s.config.Controllers,
		Shared:        s.shared,
		Identity:      identity(),
		Logf:          s.config.Logf,
	}
}

func (s *Server) startControllers() error {
	manager, err := control.New(s.controllerConfig())
	if err != nil {
		return fmt.Errorf("start controllers: %w", err)
	}
	s.jobs.Go(func() { manager.Run(s.jobsCtx) })
	return nil
}

// identity tells this server from all others that there ever were.
func identity() string {
	host, _ := os.Hostname()
	return host + "_" + string(uuid.NewUUID())
}

// URL returns where the server listens, with its real port: https://127.0.0.1:6443.
func (s *Server) URL() string { return s.url }

// RESTConfig returns the client configuration of the admin.
func (s *Server) RESTConfig() *clientrest.Config { return s.pki.RESTConfig(s.url) }

// Kubeconfig returns the admin's kubeconfig.
func (s *Server) Kubeconfig() ([]byte, error) { return s.pki.Kubeconfig(s.url) }

// KubeconfigPath returns where the kubeconfig is, empty without a DataDir.
func (s *Server) KubeconfigPath() string {
	if s.config.DataDir == "" {
		return ""
	}
	return filepath.Join(s.config.DataDir, "kubeconfig")
}

func (s *Server) openPKI() (err error) {
	dir := ""
	if s.config.DataDir != "" {
		dir = filepath.Join(s.config.DataDir, "pki")
	}
	host, _, _ := net.SplitHostPort(s.config.Listen)
	names := auth.ServingNames(host, s.config.SANs)
	for _, ip := range s.ranges.First() {
		names = append(names, ip.String())
	}
	s.pki, err = auth.OpenPKI(dir, names)
	return err
}

// trust is what extension servers are told of this one.
func (s *Server) trust() (control.Trust, error) {
	ca, err := s.pki.FrontProxyCA()
	return control.Trust{ClientCA: s.pki.CA(), ProxyCA: ca, ProxyName: auth.FrontProxyName}, err
}

func (s *Server) writeKubeconfig() error {
	if s.config.DataDir == "" {
		return nil
	}
	return s.pki.WriteKubeconfig(s.KubeconfigPath(), s.url)
}

// renewCertificates looks now and then, for servers that run longer than a certificate.
func (s *Server) renewCertificates() {
	tick := time.NewTicker(12 * time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-s.jobsCtx.Done():
			return
		case <-tick.C:
		}
		changed, err := s.pki.Renew()
		if err == nil && changed {
			err = s.writeKubeconfig()
		}
		if err != nil {
			s.config.Logf("renew certificates: %v", err)
		}
	}
}
