package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/health"
	"github.com/plinth-io/plinth/server/logging"
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

// checks are what the health endpoints ask. Of the server they know which of its parts work, and what is
// followed: the database, and files that others replace.
type checks struct {
	parts    *parts
	phase    *phase
	database *database

	logged    *logging.Progress
	encrypted []encryption.Check // of the providers of encryption at rest
	fairness  bool               // priority and fairness is on
	files     []followedFiles    // that decide about requests

	components  []controllers.Component
	component   func(name string) error // how a component is
	apiServices func() error            // an error until all group versions of this server have their APIServices
	policyReady func() bool             // the bootstrap roles are up to date
}

// followedFiles are files that are read again when they change.
type followedFiles interface {
	// Refused returns the files that have changed and cannot be used.
	Refused() []string
}

// newChecks makes the checks of a server. What its background work tells is asked later, when that is made.
func newChecks(s *Server) *checks {
	return &checks{
		parts: &s.parts, phase: &s.phase, database: &s.database,
		logged: &s.logged, encrypted: s.encryption.Checks(), fairness: s.fairness != nil,
		files:       []followedFiles{s.encryption, s.authenticator, s.authz, s.plugins},
		components:  s.config.Components,
		component:   func(name string) error { return s.controllers.Health(name) },
		apiServices: func() error { return s.apiServices.Registered() },
		policyReady: func() bool { return s.cluster.PolicyReady() },
	}
}

// probes are the health endpoints. A database that is away is no reason to restart plinth: etcd in livez passes
// unless a restart is what it takes. During a start livez waits for nothing.
func (c *checks) probes(results *health.Results, logger *slog.Logger, warnings func() []string) []*health.Probe {
	storage := health.Check{Name: "etcd", Aliases: []string{"storage"}, Run: c.database.store.Healthy, Why: c.database.reason}
	stored := []health.Check{storage}
	for _, provider := range c.encrypted {
		stored = append(stored, health.Check{Name: provider.Name, Run: func() error { return provider.Run(context.Background()) }})
	}
	stored = append(stored, health.Check{Name: "deciding-objects", Run: c.deciding, Why: error.Error},
		health.Check{Name: "config-files", Run: c.configured, Why: error.Error})
	again := storage // upstream asks with another timeout; to log the same twice helps nobody
	again.Name, again.Expected = "etcd-readiness", true
	written := health.Check{Name: "log", Run: c.logged.Check, Why: error.Error}

	usable := storage
	usable.Run = c.usable

	live := slices.Concat([]health.Check{health.Ping, written, usable}, c.hookChecks(c.parts.alive, c.registering))
	readyHooks := c.hookChecks(c.parts.ready, c.registered)
	components := c.componentChecks()
	healthy := slices.Concat([]health.Check{health.Ping, written}, stored, readyHooks, components)
	synced := expected("informer-sync", c.synced)
	ready := slices.Concat([]health.Check{health.Ping, written}, stored, []health.Check{again, synced},
		readyHooks, components, []health.Check{expected("shutdown", c.notStopping)})
	var out []*health.Probe
	for _, p := range []struct {
		name   string
		checks []health.Check
	}{{"livez", live}, {"healthz", healthy}, {"readyz", ready}} {
		probe := health.New(p.name, results, logger, p.checks...)
		if p.name == "readyz" {
			probe.Warn(warnings)
		}
		out = append(out, probe)
	}
	return out
}

// usable is an error if no other than another process can use the database.
func (c *checks) usable() error {
	if err := c.database.store.Healthy(); errors.Is(err, changelog.ErrRestart) {
		return err
	}
	return nil
}

// registering is an error if group versions of this server that have no APIService yet will not get one.
func (c *checks) registering() error { return c.unlessStopping(c.parts.alive(extensionsJob)) }

// registered is an error until all group versions of this server have their APIServices.
func (c *checks) registered() error {
	if err := c.parts.ready(extensionsJob); err != nil {
		return c.unlessStopping(err)
	}
	return c.apiServices()
}

// hookChecks returns the checks of the parts, given how a part is checked, and whether APIServices are registered.
func (c *checks) hookChecks(check func(part) error, registered func() error) (all []health.Check) {
	for _, h := range hooks {
		if !c.hooked(h.name, h.part) {
			continue
		}
		hook := expected(hookPrefix+h.name, func() error {
			if h.part == rolesPart && c.policyReady() {
				return nil
			}
			return c.unlessStopping(check(h.part))
		})
		if h.name == "bootstrap-controller" {
			hook.Aliases = []string{"bootstrap"}
		}
		all = append(all, hook)
		if h.name == "kube-apiserver-autoregistration" {
			all = append(all, expected("autoregister-completion", registered))
		}
	}
	return all
}

// componentChecks returns a check of each component, with its name.
func (c *checks) componentChecks() (all []health.Check) {
	for _, component := range c.components {
		all = append(all, health.Check{Name: component.Name, Run: func() error { return c.component(component.Name) }, Why: error.Error})
	}
	return all
}

// componentsDown tells which components do not work, and why.
func (c *checks) componentsDown() string {
	var down []string
	for _, component := range c.components {
		if err := c.component(component.Name); err != nil {
			down = append(down, component.Name+" "+err.Error())
		}
	}
	return strings.Join(down, "; ")
}

// hooked tells whether this server has the work of a hook.
func (c *checks) hooked(name string, p part) bool {
	switch {
	case name == identityLease, name == identityLeases:
		return c.database.shared
	case name == storageReadiness:
		return utilfeature.DefaultFeatureGate.Enabled(features.WatchCacheInitializationPostStartHook)
	}
	return p != fairnessJob || c.fairness
}

// expected is a check that fails during each start or stop.
func expected(name string, run func() error) health.Check {
	return health.Check{Name: name, Expected: true, Run: run, Why: error.Error}
}

// deciding is an error while an object that decides about requests cannot be read. What it may forbid is refused.
func (c *checks) deciding() error {
	return deciding.Error(deciding.Unreadable(c.database.store))
}

// configured is an error while a configuration file that decides about requests has changed and cannot be used. The
// one before stays in force.
func (c *checks) configured() error {
	if refused := c.refusedFiles(); len(refused) > 0 {
		return fmt.Errorf("%s: the file has changed and cannot be used; the log says why", strings.Join(refused, ", "))
	}
	return nil
}

func (c *checks) refusedFiles() (all []string) {
	for _, f := range c.files {
		all = append(all, f.Refused()...)
	}
	return all
}

// synced is an error until everything that is read from memory is there.
func (c *checks) synced() error {
	return errors.Join(c.parts.ready(statePart), c.parts.ready(definitionsRead), c.parts.ready(extensionsRead))
}

// unlessStopping forgives parts that have ended because the server stops.
func (c *checks) unlessStopping(err error) error {
	if c.phase.stopping.Load() && errors.Is(err, errEnded) {
		return nil
	}
	return err
}

func (c *checks) notStopping() error {
	if c.phase.stopping.Load() {
		return errors.New("process is shutting down")
	}
	return nil
}
