package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	client "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	definitionKind   = "CustomResourceDefinition"
	definitionPrefix = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
)

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
	names      workqueue.TypedRateLimitingInterface[string]
	instances  workqueue.TypedRateLimitingInterface[string]

	install sync.Mutex // between Load and Run; Run's goroutine has it alone afterwards
	served  map[string]*served

	mu   sync.Mutex
	seen map[string]int64 // the revision of each definition that the registry is up to

	ended sync.Map // name to ended: what sweep looks after
}

// NewDefinitions returns what will serve custom resources from config's store through its
// registry. It starts nothing.
func NewDefinitions(config Config) (*Definitions, error) {
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	api, err := client.NewForConfig(quiet(config.Client))
	if err != nil {
		return nil, fmt.Errorf("client of definitions: %w", err)
	}
	converters, err := newConverters(config.Services)
	if err != nil {
		return nil, err
	}
	queue := func() workqueue.TypedRateLimitingInterface[string] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](againFirst, againMost))
	}
	return &Definitions{
		config: config, statuses: statuses{api.RESTClient()}, converters: converters,
		names: queue(), instances: queue(),
		served: map[string]*served{}, seen: map[string]int64{},
	}, nil
}

// Load serves all resources whose definitions are there, so that a server that is ready
// has them.
func (d *Definitions) Load(ctx context.Context) error {
	_, err := d.read(ctx)
	return err
}

// instanceWorkers is how many definitions are deleted at once, as upstream.
const instanceWorkers = 5

// Run follows the definitions until ctx ends. Conversion webhooks are not called any more
// then.
func (d *Definitions) Run(ctx context.Context) {
	defer d.converters.Close()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer d.names.ShutDown()
	defer d.instances.ShutDown()
	workers.Go(func() { work(ctx, d.config.Logf, definitionKind, d.names, d.reconcileNames) })
	for range instanceWorkers {
		workers.Go(func() { work(ctx, d.config.Logf, definitionKind, d.instances, d.deleteInstances) })
	}
	for ctx.Err() == nil {
		if err := d.follow(ctx); err != nil {
			d.config.Logf("follow CustomResourceDefinitions: %v", err)
		}
		_ = sleepUnless(ctx, nil)
	}
}

func (d *Definitions) follow(ctx context.Context) error {
	revision, err := d.read(ctx)
	if err != nil {
		return endOf(ctx, err)
	}
	w, err := d.config.Store.Watch(definitionPrefix, definitionPrefix, revision)
	if err != nil {
		return endOf(ctx, err)
	}
	defer w.Close()
	return endOf(ctx, followChanges(ctx, w, d.handle))
}

// read makes the registry what the definitions are now, as one change.
func (d *Definitions) read(ctx context.Context) (int64, error) {
	d.install.Lock()
	defer d.install.Unlock()
	var change change
	there := map[string]bool{}
	revision, err := readCurrent(ctx, d.config.Store, definitionPrefix, func(ev *sqlstore.Event) {
		there[definitionName(ev.Entry)] = true
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
		d.enqueue(name)
	}
	return revision, nil
}

func definitionName(e *sqlstore.Entry) string { return strings.TrimPrefix(e.Key, definitionPrefix) }

// handle is told of each change of a definition.
func (d *Definitions) handle(ev *sqlstore.Event) {
	d.install.Lock()
	defer d.install.Unlock()
	var change change
	name := definitionName(ev.Entry)
	if ev.Type == sqlstore.Delete {
		d.remove(name, &change)
		d.forget(name)
	} else {
		d.put(ev.Entry, &change)
	}
	d.apply(&change)
	d.enqueue(name)
}

func (d *Definitions) enqueue(name string) {
	d.names.Add(name)
	if crd := d.now(name); crd != nil && crd.DeletionTimestamp != nil {
		d.instances.Add(name)
	}
}

// now is the present definition of that name without its schemas, shared with others; nil
// if there is none.
func (d *Definitions) now(name string) *apiextensionsv1.CustomResourceDefinition {
	e := d.config.Store.Get(definitionPrefix + name)
	if e == nil {
		return nil
	}
	def, err := definitionOf(e)
	if err != nil {
		return nil
	}
	return def.CRD
}

type definitionKey struct{}

// definitionOf decodes an entry, once.
func definitionOf(e *sqlstore.Entry) (*custom.Definition, error) {
	v := e.Memo(definitionKey{}, func() any {
		def, err := custom.Decode(e.JSON)
		if err != nil {
			return err
		}
		return def
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(*custom.Definition), nil
}

// work does what is queued until the queue is shut down. What fails is tried again.
func work(ctx context.Context, logf func(string, ...any), kind string, queue workqueue.TypedRateLimitingInterface[string], do func(context.Context, string) error) {
	for {
		name, quit := queue.Get()
		if quit {
			return
		}
		err := do(ctx, name)
		if err == nil || ctx.Err() != nil {
			queue.Forget(name)
		} else {
			if !errors.Is(err, errAway) {
				logf("%s %s: %v", kind, name, err)
			}
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// peers are the names of all other definitions of a group.
func (d *Definitions) peers(ctx context.Context, name string) (peers []*apiextensionsv1.CustomResourceDefinition, err error) {
	_, group, _ := strings.Cut(name, ".")
	_, err = readCurrent(ctx, d.config.Store, definitionPrefix, func(ev *sqlstore.Event) {
		other := definitionName(ev.Entry)
		if _, of, _ := strings.Cut(other, "."); of != group || other == name {
			return
		}
		if def, err := definitionOf(ev.Entry); err == nil {
			peers = append(peers, def.CRD)
		}
	})
	return peers, err
}
