package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	tokens "k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/aggregate"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/sqlstore"
)

// Config says which controllers run and on what.
type Config struct {
	// Client reaches the API, as somebody who may do everything.
	Client *rest.Config
	Store  *sqlstore.Store
	Kinds  *kind.Registry
	// Extensions are the group versions that extension servers serve; nil: none.
	Extensions *aggregate.Services
	// DeleteAll deletes all objects of a Kind, which need not be in Kinds, as far as their
	// finalizers allow; see rest.API.
	DeleteAll func(ctx context.Context, k *kind.Kind) error
	// Services finds the conversion webhooks that are named by their Service; nil: by the
	// name that it has in DNS.
	Services webhook.ServiceResolver

	// RootCA is the authority that has signed the server's certificate, in PEM. Controllers
	// publish it to pods.
	RootCA []byte

	// AccountTokens signs the tokens in secrets of service accounts; nil: they get none.
	AccountTokens tokens.TokenGenerator
	// Ports are the node ports of Services, which are kept in order; nil: they are not.
	Ports *allocate.Ports

	// Controllers are kube-controller-manager's --controllers: "*" stands for all that are
	// on by default, "NAME" turns one on, "-NAME" turns it off, the first that fits counts.
	// "none" stands for nothing. nil: all that are on by default.
	Controllers []string

	// Shared says that other servers may serve the same database. Then controllers run on
	// one of them at a time: the holder of the Lease plinth-controllers in kube-system.
	Shared bool
	// Identity tells this server from the others; needed if Shared.
	Identity string

	// Logf reports what an operator should know; nil: nothing.
	Logf func(format string, args ...any)
}

// Manager runs the controllers inside the server.
type Manager struct {
	config  Config
	client  *rest.Config
	enabled []controller
}

// controller is one that can be run. run returns when ctx ends, and all that it started
// has ended then.
type controller struct {
	name, alias string
	run         func(m *Manager, ctx context.Context) error
	off         bool // unless it is named
	// needs are resources, with their groups, without which there is nothing for it to do.
	// They may be switched off (--runtime-config), and are so as long as the server runs.
	needs []string
}

// rests tells what of its needs is not served, empty if all is.
func (c controller) rests(set *kind.Set) (missing string) {
	for _, need := range c.needs {
		served := func(k *kind.Kind) bool { return k.GroupResource().String() == need }
		if !slices.ContainsFunc(set.Kinds, served) {
			return need
		}
	}
	return ""
}

// controllers under upstream's names, and the ones they had before Kubernetes 1.28.
var controllers = []controller{
	{name: names.NamespaceController, alias: "namespace", run: (*Manager).runNamespaces, needs: []string{"namespaces"}},
	{name: names.GarbageCollectorController, alias: "garbagecollector", run: (*Manager).runGarbageCollector},
	{name: names.ServiceAccountController, alias: "serviceaccount", run: (*Manager).runServiceAccounts, needs: []string{"namespaces", "serviceaccounts"}},
	{name: names.ServiceAccountTokenController, alias: "serviceaccount-token", run: (*Manager).runAccountTokens, needs: []string{"serviceaccounts", "secrets"}},
	{name: names.RootCACertificatePublisherController, alias: "root-ca-cert-publisher", run: (*Manager).runRootCA, needs: []string{"namespaces", "configmaps"}},
	{name: names.ResourceQuotaController, alias: "resourcequota", run: (*Manager).runQuotas, needs: []string{"resourcequotas"}},
	{name: names.ClusterRoleAggregationController, alias: "clusterrole-aggregation", run: (*Manager).runClusterRoles, needs: []string{"clusterroles.rbac.authorization.k8s.io"}},
	{name: names.TTLAfterFinishedController, alias: "ttl-after-finished", run: (*Manager).runFinished, needs: []string{"jobs.batch"}},
	{name: names.PersistentVolumeClaimProtectionController, alias: "pvc-protection", run: (*Manager).runClaimProtection, needs: []string{"persistentvolumeclaims", "pods"}},
	{name: names.PersistentVolumeProtectionController, alias: "pv-protection", run: (*Manager).runVolumeProtection, needs: []string{"persistentvolumes"}},
	{name: names.PodGarbageCollectorController, alias: "podgc", run: (*Manager).runPodGC, needs: []string{"pods", "nodes"}, off: true},
}

// New returns a manager of the controllers that config enables. It starts nothing. The
// error says which names there are.
func New(config Config) (*Manager, error) {
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	m := &Manager{config: config, client: quiet(config.Client)}
	var err error
	m.enabled, err = choose(config.Controllers)
	return m, err
}

// Check tells whether a list of controllers is well-formed; see Config.Controllers.
func Check(list []string) error {
	_, err := choose(list)
	return err
}

// Runs tells whether a list of controllers turns on the one of a name; see Config.Controllers.
func Runs(list []string, name string) bool {
	enabled, _ := choose(list)
	return slices.ContainsFunc(enabled, func(c controller) bool { return c.is(name) })
}

func choose(list []string) (enabled []controller, err error) {
	if list == nil {
		list = []string{"*"}
	}
	for _, item := range list {
		name := strings.TrimPrefix(item, "-")
		if item != "*" && item != "none" && !slices.ContainsFunc(controllers, func(c controller) bool { return c.is(name) }) {
			return nil, fmt.Errorf("controller %q is not known; write *, none, or names out of %s, with - in front to leave one out", name, known())
		}
	}
	for _, c := range controllers {
		if c.in(list) {
			enabled = append(enabled, c)
		}
	}
	return enabled, nil
}

func (c controller) is(name string) bool { return name == c.name || name == c.alias }

// in applies the rule of kube-controller-manager: a name counts for more than the star,
// whatever the order.
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

func known() string {
	var all []string
	for _, c := range controllers {
		all = append(all, c.alias)
	}
	return strings.Join(all, ", ")
}

// Run runs the controllers until ctx ends, and returns when they have ended. On a shared
// database it first waits until it is this server's turn.
func (m *Manager) Run(ctx context.Context) {
	if len(m.enabled) == 0 {
		return
	}
	// Upstream's controllers write what they do to the logger in their context; what goes
	// wrong comes back as errors of requests that they repeat.
	ctx = klog.NewContext(ctx, klog.New(nil))
	if m.config.Shared {
		m.runElected(ctx)
		return
	}
	m.runControllers(ctx)
}

func (m *Manager) runControllers(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range m.enabled {
		wg.Go(func() { m.keepRunning(ctx, c) })
	}
	wg.Wait()
}

// restartAfter is the pause before a controller that failed is started again.
const restartAfter = time.Second

func (m *Manager) keepRunning(ctx context.Context, c controller) {
	if missing := c.rests(m.config.Kinds.Set()); missing != "" {
		m.config.Logf("%s has nothing to do: %s is switched off", c.name, missing)
		return
	}
	for {
		err := c.run(m, ctx)
		if ctx.Err() != nil {
			return
		}
		m.config.Logf("%s ended and starts again: %v", c.name, err)
		if pauseFor(ctx, restartAfter) != nil {
			return
		}
	}
}
