package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/server/health"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// hooks are the checks that kube-apiserver has of its hooks, poststarthook/NAME, with the parts of
// this server that do the same work, in kube-apiserver's order. Hooks whose work no part does are
// left out.
var hooks = []struct {
	name string
	part part
}{
	{"start-apiserver-admission-initializer", admissionPart},
	{"generic-apiserver-start-informers", statePart},
	{"priority-and-fairness-config-consumer", fairnessJob},
	{"priority-and-fairness-filter", fairnessJob},
	{"start-apiextensions-informers", definitionsRead},
	{"start-apiextensions-controllers", definitionsJob},
	{"crd-informer-synced", definitionsRead},
	{"start-system-namespaces-controller", clusterJob},
	{"start-cluster-authentication-info-controller", clusterJob},
	{identityLease, clusterJob},
	{identityLeases, clusterJob},
	{storageReadiness, statePart},
	{"start-legacy-token-tracking-controller", clusterJob},
	{"start-service-ip-repair-controllers", clusterJob},
	{"rbac/bootstrap-roles", rolesPart},
	{"scheduling/bootstrap-system-priority-classes", bootstrapPart},
	{"priority-and-fairness-config-producer", fairnessJob},
	{"bootstrap-controller", bootstrapPart},
	{"start-kubernetes-service-cidr-controller", clusterJob},
	{"aggregator-reload-proxy-client-cert", certificatesJob},
	{"start-kube-aggregator-informers", extensionsRead},
	{"apiservice-status-local-available-controller", extensionsJob},
	{"apiservice-status-remote-available-controller", extensionsJob},
	{"apiservice-registration-controller", extensionsJob},
	{"apiservice-discovery-controller", extensionsJob},
	{"kube-apiserver-autoregistration", extensionsJob},
	{"apiservice-openapi-controller", extensionsJob},
	{"apiservice-openapiv3-controller", extensionsJob},
}

// Only servers that share a database have Leases.
const (
	identityLease  = "start-kube-apiserver-identity-lease-controller"
	identityLeases = "start-kube-apiserver-identity-lease-garbage-collector"
)

// storageReadiness is a hook of a feature, which older releases lack.
const storageReadiness = "storage-readiness"

const hookPrefix = "poststarthook/"

// probes are the health endpoints. A database that is away is no reason to restart plinth: etcd in livez passes
// unless a restart is what it takes. During a start livez waits for nothing.
func (s *Server) probes() []*health.Probe {
	storage := health.Check{Name: "etcd", Aliases: []string{"storage"}, Run: s.store.Healthy, Why: s.reason}
	stored := []health.Check{storage}
	for _, c := range s.encryption.Checks() {
		stored = append(stored, health.Check{Name: c.Name, Run: func() error { return c.Run(context.Background()) }})
	}
	stored = append(stored, health.Check{Name: "deciding-objects", Run: s.deciding, Why: error.Error},
		health.Check{Name: "config-files", Run: s.configured, Why: error.Error})
	again := storage // upstream asks with another timeout; to log the same twice helps nobody
	again.Name, again.Expected = "etcd-readiness", true
	written := health.Check{Name: "log", Run: s.logged.Check, Why: error.Error}

	usable := storage
	usable.Run = s.usable

	live := slices.Concat([]health.Check{health.Ping, written, usable}, s.hookChecks(s.parts.alive, s.registering))
	readyHooks := s.hookChecks(s.parts.ready, s.registered)
	healthy := slices.Concat([]health.Check{health.Ping, written}, stored, readyHooks)
	synced := expected("informer-sync", s.synced)
	ready := slices.Concat([]health.Check{health.Ping, written}, stored, []health.Check{again, synced},
		readyHooks, []health.Check{expected("shutdown", s.notStopping)})
	var out []*health.Probe
	for _, p := range []struct {
		name   string
		checks []health.Check
	}{{"livez", live}, {"healthz", healthy}, {"readyz", ready}} {
		probe := health.New(p.name, s.results, s.config.Log, p.checks...)
		if p.name == "readyz" {
			probe.Warn(s.alarms.Warnings)
		}
		out = append(out, probe)
	}
	return out
}

// usable is an error if no other than another process can use the database.
func (s *Server) usable() error {
	if err := s.store.Healthy(); errors.Is(err, changelog.ErrRestart) {
		return err
	}
	return nil
}

// registering is an error if group versions of this server that have no APIService yet will not get one.
func (s *Server) registering() error { return s.unlessStopping(s.parts.alive(extensionsJob)) }

// registered is an error until all group versions of this server have their APIServices.
func (s *Server) registered() error {
	if err := s.parts.ready(extensionsJob); err != nil {
		return s.unlessStopping(err)
	}
	return s.apiServices.Registered()
}

// hookChecks returns the checks of the parts, given how a part is checked, and whether APIServices are registered.
func (s *Server) hookChecks(check func(part) error, registered func() error) (checks []health.Check) {
	for _, h := range hooks {
		if !s.hooked(h.name, h.part) {
			continue
		}
		c := expected(hookPrefix+h.name, func() error {
			if h.part == rolesPart && s.cluster.PolicyReady() {
				return nil
			}
			return s.unlessStopping(check(h.part))
		})
		if h.name == "bootstrap-controller" {
			c.Aliases = []string{"bootstrap"}
		}
		checks = append(checks, c)
		if h.name == "kube-apiserver-autoregistration" {
			checks = append(checks, expected("autoregister-completion", registered))
		}
	}
	return checks
}

// hooked tells whether this server has the work of a hook.
func (s *Server) hooked(name string, p part) bool {
	switch {
	case name == identityLease, name == identityLeases:
		return s.shared
	case name == storageReadiness:
		return utilfeature.DefaultFeatureGate.Enabled(features.WatchCacheInitializationPostStartHook)
	}
	return p != fairnessJob || s.fairness != nil
}

// expected is a check that fails during each start or stop.
func expected(name string, run func() error) health.Check {
	return health.Check{Name: name, Expected: true, Run: run, Why: error.Error}
}

// deciding is an error while an object that decides about requests cannot be read. What it may forbid is refused.
func (s *Server) deciding() error {
	return deciding.Error(deciding.Unreadable(s.store))
}

// configured is an error while a configuration file that decides about requests has changed and cannot be used. The
// one before stays in force.
func (s *Server) configured() error {
	if refused := s.refusedFiles(); len(refused) > 0 {
		return fmt.Errorf("%s: the file has changed and cannot be used; the log says why", strings.Join(refused, ", "))
	}
	return nil
}

func (s *Server) refusedFiles() []string {
	return slices.Concat(s.encryption.Refused(), s.authenticator.Refused(), s.authz.Refused(), s.plugins.Refused())
}

// synced is an error until everything that is read from memory is there.
func (s *Server) synced() error {
	return errors.Join(s.parts.ready(statePart), s.parts.ready(definitionsRead), s.parts.ready(extensionsRead))
}

// unlessStopping forgives parts that have ended because the server stops.
func (s *Server) unlessStopping(err error) error {
	if s.stopping.Load() && errors.Is(err, errEnded) {
		return nil
	}
	return err
}

func (s *Server) notStopping() error {
	if s.stopping.Load() {
		return errors.New("process is shutting down")
	}
	return nil
}
