package server

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/admission/policies"
	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/debugging"
	"github.com/plinth-io/plinth/server/discovery"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/fairness"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/history"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/openapi"
	"github.com/plinth-io/plinth/server/resolve"
	"github.com/plinth-io/plinth/server/rest"
)

// wire makes the parts that answer requests.
func (s *Server) wire(plugins apiadmission.ConfigProvider) error {
	s.services = resolve.New(s.store, s.url)
	s.outside.open(&s.config, &s.listening, s.pki, s.otherAddresses)
	s.extensions = aggregator.New(s.services, s.pki.FrontProxy, s.outside.dialer)
	if err := s.openAuthenticator(); err != nil {
		return err
	}
	var err error
	if s.authz, err = authz.New(s.store, s.config.Authorization, s.config.Log); err != nil {
		return configError("authorization (--authorization-*): %w", err)
	}
	if err := s.makeKinds(); err != nil {
		return err
	}
	chain, err := s.admission(plugins)
	if err != nil {
		return err
	}
	s.parts.set(admissionPart, works)
	s.rest = rest.New(s.store, s.kinds, rest.Options{
		Admission: chain, Authorizer: s.authz,
		Audited:   s.audit != nil,
		CBOR:      servesCBOR(),
		Untracked: s.config.Untracked,

		CommitDelay: s.config.LeaseCommitDelay,

		Deprecated: s.metrics.Deprecated,
		Sent:       s.metrics.Events,
	})
	if err := s.makeFairness(); err != nil {
		return err
	}
	s.maintenance = newMaintenance(&s.config, s.store, s.encryption)
	s.checks = newChecks(s)
	s.condition = newCondition(s, s.replica, func(ctx context.Context, c alarms.Change) error { return s.cluster.Tell(ctx, c) })
	s.fillMetrics()
	slowCalls, slowBytes := slowBounds(s.config.Memory, s.config.MaxConnections)
	s.guard = guard.New(s.kinds, guard.Options{
		Authenticator: s.authenticator, Authorizer: s.authz, Audit: s.audit,
		Limits: guard.Limits{
			Timeout: s.config.RequestTimeout, Reads: s.config.MaxReads, Writes: s.config.MaxWrites,
			Connections: s.config.MaxConnections, GoAway: s.config.GoAwayChance,
			SlowCalls: slowCalls, SlowBytes: slowBytes,
		},
		Fairness: s.fairness,
		Metrics:  s.metrics, Logger: s.config.Log,
	})
	r := s.routes()
	r.add(s.guard)
	s.schemas = r.openapi
	for _, add := range s.addRoutes {
		add(s.guard)
	}
	return nil
}

// makeKinds makes the registry with the built-in kinds.
func (s *Server) makeKinds() error {
	enabled, err := builtin.ParseEnabled(s.config.RuntimeConfig, s.config.Forward)
	if err != nil {
		return fieldError("%v: %w", field("RuntimeConfig"), err)
	}
	removed, err := enabled.Removed(s.config.ServeRemovedAPIs)
	if err != nil {
		return fieldError("%v: %w", field("ServeRemovedAPIs"), err)
	}
	transports, err := s.outside.toNodes()
	if err != nil {
		return err
	}
	s.kinds = kind.NewRegistry(builtin.Priorities())
	s.kinds.Replace(nil, builtin.Kinds(builtin.Options{
		Authorizer: s.authz, Rules: s.authz, Roles: s.authz.Resolver(), Registry: s.kinds, Store: s.store, Client: s.InProcess(nil),
		Authenticator: s.authenticator, Audiences: s.tokens.Audiences(), Tokens: s.tokens, Enabled: enabled,
		Removed: removed, Transports: transports, Services: &s.ranges, Database: s.database.health,
	}))
	s.kinds.Replace(nil, history.Kinds(history.Options{Store: s.store, Kinds: s.kinds, Authorizer: s.authz}))
	return nil
}

// makeFairness makes what divides the server among its clients.
func (s *Server) makeFairness() (err error) {
	if s.config.NoFairness {
		return nil
	}
	s.fairness, err = fairness.New(fairness.Options{
		Seats: s.config.MaxReads + s.config.MaxWrites, Timeout: s.config.RequestTimeout,
		Store: s.store, Kinds: s.kinds, Client: s.InProcess(nil), Logger: s.config.Log,
	})
	return err
}

// admission is the plugins that are asked about each write.
func (s *Server) admission(plugins apiadmission.ConfigProvider) (apiadmission.Interface, error) {
	chain, err := admission.New(admission.Options{
		WebhookOptions: admission.WebhookOptions{
			Store: s.store, Client: s.InProcess(nil), Services: s.services, Authorizer: s.authz,
			Dial: s.outside.dialer.Dial, Self: toExtensions{s.InProcess(nil).Transport, s.extensions},
		},
		Mapper: controllers.NewMapper(s.kinds), Kinds: s.kinds, Stop: s.ctx.Done(), Reservations: &s.reservations,
		Enable: s.config.EnableAdmissionPlugins, Disable: s.config.DisableAdmissionPlugins, Config: plugins, Identity: s.host(),
	})
	if err != nil {
		return nil, configError("%w", err)
	}
	s.plugins = chain
	if s.audit != nil { // the annotations of plugins go into the request's audit event
		return apiadmission.WithAudit(chain), nil
	}
	return chain, nil
}

// routes are all paths, with what answers them.
func (s *Server) routes() *routes {
	debug, end := debugging.New(s.config.Debugging)
	s.endDebugging = end
	r := &routes{
		debug:      debug,
		rest:       s.rest,
		extensions: s.extensions,
		metrics:    s.metrics.Handler(),
		slis:       metrics.HandlerOf(s.results.Collectors()...),
		probes:     s.checks.probes(s.results, s.config.Log, s.condition.alarms.Warnings),
		documents:  s.tokens.Documents(s.host()),
		backup:     s.maintenance.backups.Serve,
		digest:     s.database.serveDigest,
		status:     s.condition.serveStatus,
		peers:      s.servePeers,
		pages:      debugging.Pages{},
	}
	r.pages.AddFlags(s.config.Flags)
	if s.config.ServeSnapshots {
		r.snapshots = newSnapshots(&s.database).serve
	}
	if s.fairness != nil {
		r.fairness = guard.HTTP(s.fairness.Debug())
	}
	var documents *discovery.Discovery
	r.pages.AddStatus(kind.Effective(), func() []string { return documents.Paths() })
	documents = discovery.New(s.kinds, s.extensions, r.otherPaths()...)
	documents.CBOR, documents.Unread = servesCBOR(), s.rest.Undiscovered
	r.discovery = documents
	r.openapi = openapi.New(s.kinds, slices.Collect(maps.Keys(r.documents))...)
	r.openapi.CBOR = servesCBOR()
	return r
}

// servesCBOR tells whether upstream's feature gate for CBOR is on. Gates do not change while a server
// runs.
func servesCBOR() bool { return utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) }

// fillMetrics adds what the parts count themselves.
func (s *Server) fillMetrics() {
	build := BuildInfo()
	s.metrics.Register(
		metrics.Store{Stats: s.store.Stats, Lags: s.condition.lags}, s.condition.size, s.condition.alarms, metrics.Certificates{Ends: s.certificates.ends},
		metrics.Info(prometheus.Labels{
			"version": build.Version, "commit": build.Commit, "kubernetes_version": build.Kubernetes, "go_version": build.Go,
			"dialect": dialects.Scheme(s.config.DSN), "database": dialects.Describe(s.config.DSN),
		}))
	s.metrics.Register(s.authenticator.Collectors()...)
	s.metrics.Register(s.maintenance.backups.Collectors()...)
	s.metrics.Register(s.maintenance.scrubber.Collectors()...)
	upstream := []func(name string) bool{
		metrics.Named(authn.UpstreamMetrics), metrics.Named(authz.UpstreamMetrics), metrics.Named(guard.UpstreamMetrics),
		metrics.Named(metrics.Queues), metrics.Named(policies.UpstreamMetrics), metrics.Named(metrics.Features),
	}
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	if s.fairness != nil {
		s.metrics.Register(s.fairness.Collectors()...)
		upstream = append(upstream, fairness.UpstreamMetric)
	}
	if s.config.Encryption.ConfigFile != "" {
		upstream = append(upstream, encryption.UpstreamMetric)
	}
	if s.audit != nil {
		upstream = append(upstream, metrics.Named(audit.UpstreamMetrics))
	}
	s.metrics.Gather(metrics.Upstream(upstream...))
	if len(s.config.Components) > 0 {
		s.metrics.GatherRest(legacyregistry.DefaultGatherer)
	}
}
