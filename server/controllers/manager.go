package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Config says which controllers run and what they work on.
type Config struct {
	// API is what the controllers work on.
	API   API
	Store *sqlstore.Store
	// Credentials is what pods get to reach the API.
	Credentials Credentials
	// Reservations are objects that quotas have counted and that are not stored yet; nil: none are known.
	Reservations *admission.Reservations

	// Controllers are kube-controller-manager's --controllers: "*" stands for all that are
	// on by default, "NAME" turns one on, "-NAME" turns it off.
	// "none", alone, or an empty list stands for none of them. nil: all that are on by default.
	Controllers []string
	// Components run beside the controllers, whichever of these run.
	Components []Component

	// Identity distinguishes servers that share a database. The controllers then run on one server at a time:
	// the holder of the Lease plinth-controllers in kube-system. Empty: there are no other servers.
	Identity string

	// Logger gets what an operator should know; nil: nothing.
	Logger *slog.Logger
}

// API is the API as controllers see it.
type API struct {
	// Client is a client of the API whose user may do everything.
	Client *clientrest.Config
	// As returns a client for another user. Each controller has the rights of its own account, as in a
	// kube-controller-manager with --use-service-account-credentials. nil: all controllers use Client.
	As    func(who user.Info) *clientrest.Config
	Kinds *kind.Registry
	// Extensions are the group versions that extension servers serve; nil: none.
	Extensions *aggregator.Services
}

// Credentials is what controllers give to pods.
type Credentials struct {
	// RootCA is the authority that has signed the server's certificate, in PEM.
	RootCA []byte
	// Tokens signs the tokens in secrets of service accounts; nil: the secrets get none.
	Tokens serviceaccount.TokenGenerator
}

// Manager runs the controllers inside the server.
type Manager struct {
	config     Config
	client     *clientrest.Config
	enabled    []controller
	components []*component
	fence      *fence // nil: there are no other servers
}

// controller is an entry in the table of controllers. run returns when ctx has ended and everything that it
// started has ended.
type controller struct {
	name, alias string
	run         func(m *Manager, ctx context.Context) error
	off         bool // it runs only if it is named
	// needs are the resources, with their groups, without which the controller has no work. --runtime-config
	// may turn them off.
	needs []string
	// account is the service account in kube-system whose rights upstream's bootstrap roles give to the
	// controller. Empty: the controller has the rights of the controller manager.
	account string
}

// missing returns the first resource that the controller needs and that is not served; the controller then
// does not run. Empty: all are served.
func (c controller) missing(set *kind.Set) string {
	for _, need := range c.needs {
		served := func(k *kind.Kind) bool { return k.GroupResource().String() == need }
		if !slices.ContainsFunc(set.Kinds, served) {
			return need
		}
	}
	return ""
}

// controllers is the table of controllers. alias is the other name that kube-controller-manager accepts or,
// for newer controllers, the name without "-controller".
var controllers = []controller{
	{name: names.NamespaceController, alias: "namespace", account: "namespace-controller", run: (*Manager).runNamespaces, needs: []string{"namespaces"}},
	{name: names.GarbageCollectorController, alias: "garbagecollector", account: "generic-garbage-collector", run: (*Manager).runGarbageCollector},
	{name: names.ServiceAccountController, alias: "serviceaccount", account: "service-account-controller", run: (*Manager).runServiceAccounts, needs: []string{"namespaces", "serviceaccounts"}},
	{name: names.ServiceAccountTokenController, alias: "serviceaccount-token", run: (*Manager).runAccountTokens, needs: []string{"serviceaccounts", "secrets"}},
	{name: names.RootCACertificatePublisherController, alias: "root-ca-cert-publisher", account: "root-ca-cert-publisher", run: (*Manager).runRootCA, needs: []string{"namespaces", "configmaps"}},
	{name: names.ResourceQuotaController, alias: "resourcequota", account: "resourcequota-controller", run: (*Manager).runQuotas, needs: []string{"resourcequotas"}},
	{name: names.ClusterRoleAggregationController, alias: "clusterrole-aggregation", account: "clusterrole-aggregation-controller", run: (*Manager).runClusterRoles, needs: []string{"clusterroles.rbac.authorization.k8s.io"}},
	{name: names.TTLAfterFinishedController, alias: "ttl-after-finished", account: "ttl-after-finished-controller", run: (*Manager).runFinished, needs: []string{"jobs.batch"}},
	{name: names.PersistentVolumeClaimProtectionController, alias: "pvc-protection", account: "pvc-protection-controller", run: (*Manager).runClaimProtection, needs: []string{"persistentvolumeclaims", "pods"}},
	{name: names.PersistentVolumeProtectionController, alias: "pv-protection", account: "pv-protection-controller", run: (*Manager).runVolumeProtection, needs: []string{"persistentvolumes"}},
	{name: names.VolumeAttributesClassProtectionController, alias: "volumeattributesclass-protection", account: "volumeattributesclass-protection-controller", run: (*Manager).runVolumeClassProtection, needs: []string{"persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses.storage.k8s.io"}},
	{name: names.ValidatingAdmissionPolicyStatusController, alias: "validatingadmissionpolicy-status", account: "validatingadmissionpolicy-status-controller", run: (*Manager).runPolicyStatus, needs: []string{"validatingadmissionpolicies.admissionregistration.k8s.io"}},
	{name: names.StorageVersionMigratorController, alias: "svm", account: "storage-version-migrator-controller", run: (*Manager).runMigrations, needs: []string{"storageversionmigrations.storagemigration.k8s.io"}},
	{name: names.PodGarbageCollectorController, alias: "podgc", account: "pod-garbage-collector", run: (*Manager).runPodGC, needs: []string{"pods", "nodes"}, off: true},
}

// New returns a Manager of the controllers that config enables and of its components, without starting them. Its error lists the
// valid names.
func New(config Config) (*Manager, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{config: config, client: config.API.Client}
	var err error
	m.enabled, err = choose(config.Controllers)
	for _, c := range config.Components {
		survivePanics()
		m.components = append(m.components, &component{Component: c})
	}
	return m, err
}

// Check returns an error if a list of controllers is not valid; see Config.Controllers.
func Check(list []string) error {
	_, err := choose(list)
	return err
}

// Chosen returns the names of the controllers that a list turns on; see Config.Controllers.
func Chosen(list []string) (names []string) {
	enabled, _ := choose(list)
	for _, c := range enabled {
		names = append(names, c.alias)
	}
	return names
}

// OwnOf are the controllers that kube-controller-manager is to leave alone beside a list of these, by its own names: those that
// the list turns on, and those that run by default, which the list turns off.
func OwnOf(list []string) (names []string) {
	for _, c := range controllers {
		if !c.off || Runs(list, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// Runs reports whether a list of controllers turns on the named one; see Config.Controllers.
func Runs(list []string, name string) bool {
	enabled, _ := choose(list)
	return slices.ContainsFunc(enabled, func(c controller) bool { return c.is(name) })
}

func choose(list []string) (enabled []controller, err error) {
	if list == nil {
		list = []string{"*"}
	}
	if err := checkList(list); err != nil {
		return nil, err
	}
	for _, c := range controllers {
		if c.in(list) {
			enabled = append(enabled, c)
		}
	}
	return enabled, nil
}

// checkList refuses unknown names and lists that contradict themselves.
func checkList(list []string) error {
	for _, item := range list {
		name, off := strings.CutPrefix(item, "-")
		i := slices.IndexFunc(controllers, func(c controller) bool { return c.is(name) })
		switch {
		case item == "none" && len(list) > 1:
			return errors.New("none turns all controllers off and stands alone; write none, or the names of those to run")
		case item == "*" || item == "none":
		case i < 0:
			return fmt.Errorf("controller %q is not known; write *, none, or names out of %s, with - in front to leave one out", item, strings.Join(Names(), ", "))
		case off && slices.ContainsFunc(list, controllers[i].is):
			return fmt.Errorf("controller %s is both turned on and turned off; write %[1]s or -%[1]s", name)
		}
	}
	return nil
}

func (c controller) is(name string) bool { return name == c.name || name == c.alias }

// in reports whether a list turns the controller on. As in kube-controller-manager, a name takes precedence
// over the star, in any order.
func (c controller) in(list []string) bool {
	for _, item := range list {
		if c.is(item) {
			return true
		}
		if name, off := strings.CutPrefix(item, "-"); off && c.is(name) {
			return false
		}
	}
	return !c.off && slices.Contains(list, "*")
}

// Names returns the short names of all controllers.
func Names() []string {
	var all []string
	for _, c := range controllers {
		all = append(all, c.alias)
	}
	return all
}

// Run runs the controllers and components until ctx ends, and returns when they have ended. On a shared database, it first
// waits until this server is elected.
func (m *Manager) Run(ctx context.Context) {
	if len(m.enabled) == 0 && len(m.components) == 0 {
		return
	}
	// Upstream's controllers write debug records to the logger in their context. Failures come back as errors
	// of requests that the controllers repeat.
	ctx = klog.NewContext(ctx, logging.Retrying(m.config.Logger, "controllers"))
	if m.shared() {
		m.runElected(ctx)
		return
	}
	m.runControllers(ctx)
}

// shared tells whether other servers may serve the same database.
func (m *Manager) shared() bool { return m.config.Identity != "" }

func (m *Manager) runControllers(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range m.enabled {
		wg.Go(func() { m.keepRunning(ctx, c) })
	}
	for _, c := range m.components {
		wg.Go(func() { m.keepComponent(ctx, c) })
	}
	wg.Wait()
}

// clientOf returns the client of one controller.
func (m *Manager) clientOf(c controller) *clientrest.Config { return m.clientAs(c.user()) }

func (m *Manager) clientAs(who user.Info) *clientrest.Config {
	if m.config.API.As == nil {
		return m.client
	}
	client := clientrest.CopyConfig(m.config.API.As(who))
	client.WarningHandler = clientrest.NoWarnings{} // warnings are for people who write requests
	return client
}

// user returns the identity of the controller's requests.
func (c controller) user() user.Info {
	if c.account == "" {
		return &user.DefaultInfo{Name: user.KubeControllerManager, Groups: []string{user.AllAuthenticated}}
	}
	return &user.DefaultInfo{
		Name:   apiserviceaccount.MakeUsername(metav1.NamespaceSystem, c.account),
		Groups: append(apiserviceaccount.MakeGroupNames(metav1.NamespaceSystem), user.AllAuthenticated),
	}
}

// restartAfter is the pause before a failed controller restarts.
const restartAfter = time.Second

// warnEvery is the shortest pause between two warnings about the same controller.
const warnEvery = time.Minute

// runOnce runs the controller until ctx ends or something panics in it, which ends the process unless there are components.
func (c controller) runOnce(m *Manager, ctx context.Context) error {
	ctx, end := endedByPanics(ctx)
	defer end()
	err := c.run(m, ctx)
	return cmp.Or(context.Cause(ctx), err)
}

func (m *Manager) keepRunning(ctx context.Context, c controller) {
	if missing := c.missing(m.config.API.Kinds.Set()); missing != "" {
		m.config.Logger.Info("controller has nothing to do: a resource is switched off", "controller", c.name, "resource", missing)
		return
	}
	own := *m
	own.client = m.fence.client(m.clientOf(c))
	for failed := (time.Time{}); ; {
		err := c.runOnce(&own, ctx)
		if ctx.Err() != nil {
			return
		}
		level := slog.LevelWarn
		if time.Since(failed) < warnEvery {
			level = slog.LevelDebug
		} else {
			failed = time.Now()
		}
		m.config.Logger.Log(ctx, level, "controller ended and starts again", "controller", c.name, "err", err)
		if sleep.For(ctx, restartAfter) != nil {
			return
		}
	}
}
