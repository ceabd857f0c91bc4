package definitions

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apiserver/pkg/util/webhook"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/dialout"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const definitionKind = "CustomResourceDefinition"

// Config is what Definitions work on.
type Config struct {
	// Client reaches the API as a user who may do everything.
	Client *clientrest.Config
	// Store has the CustomResourceDefinitions, and Kinds gets what they define.
	Store *sqlstore.Store
	Kinds *kind.Registry
	// DeleteAll deletes all objects of a Kind, which need not be in Kinds, as far as their
	// finalizers allow; see rest.API.
	DeleteAll func(ctx context.Context, k *kind.Kind) error
	// Services finds the conversion webhooks that are named by their Service; nil: by the
	// name that it has in DNS.
	Services webhook.ServiceResolver
	// Dial connects to conversion webhooks; nil: a net.Dialer.
	Dial dialout.Func
	// WaitForInstances is how long a deletion waits before it says in a condition that instances
	// are still there; 0: a minute, as upstream.
	WaitForInstances time.Duration
	// Logger gets what an operator should know; nil: nothing.
	Logger *slog.Logger
}

// Definitions serves the resources of CustomResourceDefinitions. Every server has one,
// because every server's registry has to follow the definitions; the changes that it makes
// to them are the same on all, and the first that writes one wins.
//
// One goroutine follows the log and keeps the registry; it never waits for a write. What
// has to be written goes through two queues: names, with one worker because names are
// granted one after the other, and instances, which takes as long as finalizers do.
type Definitions struct {
	config     Config
	statuses   statuses
	converters *custom.Converters
	names      reconcile.Queue
	instances  reconcile.Queue

	install sync.Mutex // guards served; after Load only Run's goroutine takes it
	served  map[string]*served

	mu   sync.Mutex
	seen map[string]int64 // the revision of each definition that the registry shows

	ended sync.Map // from a definition's name to its ended, for sweep
}

// New returns Definitions for config. It starts nothing.
func New(config Config) (*Definitions, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.WaitForInstances = cmp.Or(config.WaitForInstances, time.Minute)
	validation.RegisterMetrics()
	api, err := apiextensionsclient.NewForConfig(config.Client)
	if err != nil {
		return nil, fmt.Errorf("client of definitions: %w", err)
	}
	converters, err := newConverters(config.Services, config.Dial)
	if err != nil {
		return nil, err
	}
	return &Definitions{
		config: config, statuses: statuses{api.RESTClient()}, converters: converters,
		names: reconcile.NewQueue(reconcile.First, reconcile.Most), instances: reconcile.NewQueue(reconcile.First, instancesAgain),
		served: map[string]*served{}, seen: map[string]int64{},
	}, nil
}

// Load serves the resources of all definitions in the store. It runs before the server is
// ready.
func (d *Definitions) Load(ctx context.Context) error {
	_, err := d.read(ctx)
	return err
}

// instancesAgain is the longest pause before a definition whose instances cannot be deleted is
// tried again: each try looks at all of them. A change of the definition has it tried at once.
const instancesAgain = 30 * time.Second

// instanceWorkers is how many definitions are deleted at once, as upstream.
const instanceWorkers = 5

// Run follows the definitions until ctx ends. After it no conversion webhook is called.
func (d *Definitions) Run(ctx context.Context) {
	defer d.converters.Close()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer d.names.ShutDown()
	defer d.instances.ShutDown()
	workers.Go(func() { reconcile.Work(ctx, d.config.Logger, definitionKind, d.names, d.reconcileNames) })
	for range instanceWorkers {
		workers.Go(func() { reconcile.Work(ctx, d.config.Logger, definitionKind, d.instances, d.deleteInstances) })
	}
	for failed := false; ctx.Err() == nil; {
		err := d.follow(ctx)
		if err != nil && !failed {
			d.config.Logger.Warn("changes of CustomResourceDefinitions were lost; reading anew", "err", err)
		}
		failed = err != nil
		_ = sleep.For(ctx, lister.RetryRead)
	}
}

func (d *Definitions) follow(ctx context.Context) error {
	revision, err := d.read(ctx)
	if err != nil {
		return lister.Ended(ctx, err)
	}
	return lister.FollowFrom(ctx, d.config.Store, custom.DefinitionPrefix, revision, func() {}, d.handle)
}

// read brings the registry in line with the definitions in the store, as one change.
func (d *Definitions) read(ctx context.Context) (int64, error) {
	d.install.Lock()
	defer d.install.Unlock()
	var change change
	there := map[string]bool{}
	revision, err := lister.Read(ctx, d.config.Store, custom.DefinitionPrefix, func(ev *sqlstore.Event) {
		there[custom.DefinitionName(ev.Entry)] = true
		d.put(ev.Entry, &change)
	})
	if err != nil {
		return 0, err
	}
	for name := range d.served {
		if !there[name] {
			d.remove(name, &change)
		}
	}
	d.apply(&change)
	for name := range there {
		d.names.Add(name)
		d.enqueueInstances(name)
	}
	return revision, nil
}

// handle brings the registry in line with one change of a definition.
func (d *Definitions) handle(ev *sqlstore.Event) {
	d.install.Lock()
	defer d.install.Unlock()
	var change change
	name := custom.DefinitionName(ev.Entry)
	if ev.Type == sqlstore.Delete {
		d.remove(name, &change)
		d.forget(name)
	} else {
		d.put(ev.Entry, &change)
	}
	d.apply(&change)
	d.names.Add(name)
	if !onlyTerminating(ev) {
		d.enqueueInstances(name)
	}
}

func (d *Definitions) enqueueInstances(name string) {
	if crd := d.now(name); crd != nil && crd.DeletionTimestamp != nil {
		d.instances.Add(name)
	}
}

// now returns the stored definition of that name without its schemas, nil if there is none.
// It is shared: nobody may change it.
func (d *Definitions) now(name string) *apiextensionsv1.CustomResourceDefinition {
	e := d.config.Store.Get(custom.DefinitionPrefix + name)
	if e == nil {
		return nil
	}
	def, err := custom.DefinitionOf(e)
	if err != nil {
		return nil
	}
	return def.CRD
}

// peers returns the other definitions of the group of the definition with that name.
func (d *Definitions) peers(ctx context.Context, name string) (peers []*apiextensionsv1.CustomResourceDefinition, err error) {
	_, group, _ := strings.Cut(name, ".")
	_, err = lister.Read(ctx, d.config.Store, custom.DefinitionPrefix, func(ev *sqlstore.Event) {
		other := custom.DefinitionName(ev.Entry)
		if _, of, _ := strings.Cut(other, "."); of != group || other == name {
			return
		}
		if def, err := custom.DefinitionOf(ev.Entry); err == nil {
			peers = append(peers, def.CRD)
		}
	})
	return peers, err
}

// newConverters makes the converters between versions. Conversion webhooks are called by dial
// at their URL, or where services finds their Service.
func newConverters(services webhook.ServiceResolver, dial dialout.Func) (*custom.Converters, error) {
	if services == nil {
		services = webhook.NewDefaultServiceResolver()
	}
	return custom.NewConverters(services, dial)
}
