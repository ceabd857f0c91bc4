package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	clientrest "k8s.io/client-go/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

var apiServicePrefix = object.Prefix(apiregistration.GroupName, "apiservices")

// Config is what APIServices work on.
type Config struct {
	// Client reaches the API as a user who may do everything.
	Client *clientrest.Config
	Store  *sqlstore.Store
	// Kinds has the group versions that the server has itself.
	Kinds *kind.Registry
	// Extensions is told of the group versions that extension servers have.
	Extensions *Services
	// Logger gets what an operator should know; nil: nothing.
	Logger *slog.Logger
}

// APIServices keeps the APIService objects, which say who serves which group version. Every
// server has one. All servers write the same, so the first to write wins.
// https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
type APIServices struct {
	config Config
	api    apiregistrationclient.APIServicesGetter
	own    map[string]*apiregistration.APIService // of the built-in group versions, by name
	names  reconcile.Queue
	remote *Services
	begun  chan struct{} // closed when Run has tried to register the built-in group versions

	mu      sync.Mutex
	atStart map[string]bool // names of the objects that were there when Run began
	done    map[string]bool // names that were reconciled since
}

// NewAPIServices returns APIServices for config. It starts nothing.
func NewAPIServices(config Config) (*APIServices, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	api, err := apiregistrationclient.NewForConfig(config.Client)
	if err != nil {
		return nil, fmt.Errorf("client of API services: %w", err)
	}
	a := &APIServices{
		config: config, api: api, own: map[string]*apiregistration.APIService{},
		names: reconcile.NewQueue(reconcile.First, reconcile.Most),
		done:  map[string]bool{}, remote: config.Extensions, begun: make(chan struct{}),
	}
	for _, s := range builtin.APIServices(config.Kinds.Set()) {
		a.own[s.Name] = s
	}
	return a, nil
}

// Load tells Extensions which group versions extension servers have. It runs before the
// server is ready.
func (a *APIServices) Load(ctx context.Context) error {
	there := map[string]bool{}
	_, err := lister.Read(ctx, a.config.Store, apiServicePrefix, func(ev *sqlstore.Event) {
		there[apiServiceName(ev.Entry)] = true
		a.hand(ev)
	})
	if err != nil {
		return err
	}
	for _, x := range a.remote.List() {
		if !there[x.Object.Name] {
			a.remote.Remove(x.Object.Name)
		}
	}
	return nil
}

// changed handles each change of an APIService.
func (a *APIServices) changed(ev *sqlstore.Event) {
	a.hand(ev)
	a.names.Add(apiServiceName(ev.Entry))
}

// hasService is in the JSON of every APIService that names a Service, and of few others.
var hasService = []byte(`"service":{`)

// hand tells Extensions of an APIService that names a Service.
func (a *APIServices) hand(ev *sqlstore.Event) {
	if ev.Type == sqlstore.Delete || !bytes.Contains(ev.Entry.Value, hasService) {
		a.remote.Remove(apiServiceName(ev.Entry))
		return
	}
	object, err := decodeAPIService(ev.Entry)
	if err != nil {
		a.config.Logger.Error("APIService cannot be served", "name", apiServiceName(ev.Entry), "err", err)
		return
	}
	a.remote.Put(object)
}

// registerAtOnce is how many objects are written at once by a server that finds none, so
// that they share a transaction or two.
const registerAtOnce = 32

// Run keeps the objects, and asks extension servers what they serve, until ctx ends.
func (a *APIServices) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer a.names.ShutDown()
	wg.Go(func() { a.remote.Poll(ctx) })
	if err := a.begin(ctx); err != nil {
		a.config.Logger.Warn("group versions could not be registered", "err", err)
	}
	close(a.begun)
	wg.Go(func() { reconcile.Work(ctx, a.config.Logger, "APIService", a.names, a.reconcile) })
	wg.Go(func() { a.followAgain(ctx, custom.DefinitionPrefix, a.definitionChanged) })
	wg.Go(func() { a.watchOver(ctx) })
	a.followAgain(ctx, apiServicePrefix, a.changed)
}

// Begun is closed when Run has tried once to register the built-in group versions.
func (a *APIServices) Begun() <-chan struct{} { return a.begun }

// Registered is an error unless every built-in group version has been registered once
// (upstream: controlplane/apiserver/aggregator.go).
func (a *APIServices) Registered() error {
	if a.config.Kinds.Lookup(apiregistration.GroupName, "v1", "apiservices") == nil {
		return nil // it is switched off
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var missing []string
	for name := range a.own {
		if !a.done[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("missing APIService: %v", missing)
	}
	return nil
}

// begin registers the built-in group versions. What fails is tried again.
func (a *APIServices) begin(ctx context.Context) error {
	a.atStart = map[string]bool{}
	_, err := lister.Read(ctx, a.config.Store, apiServicePrefix, func(ev *sqlstore.Event) {
		a.atStart[apiServiceName(ev.Entry)] = true
	})
	if err != nil {
		return lister.Ended(ctx, err)
	}
	var group errgroup.Group
	group.SetLimit(registerAtOnce)
	for name := range a.own {
		group.Go(func() error {
			if err := a.reconcile(ctx, name); err != nil {
				a.names.AddRateLimited(name)
			}
			return nil
		})
	}
	return group.Wait()
}

// followAgain follows a resource. When changes are lost, all names are queued again.
func (a *APIServices) followAgain(ctx context.Context, prefix string, f func(*sqlstore.Event)) {
	for ctx.Err() == nil {
		if err := lister.Follow(ctx, a.config.Store, prefix, func() {}, f); err != nil {
			a.config.Logger.Warn("changes were lost; reading anew", "prefix", prefix, "err", err)
			a.again(ctx)
		}
		_ = sleep.For(ctx, lister.RetryRead)
	}
}

// again queues all names and reads all APIServices.
func (a *APIServices) again(ctx context.Context) {
	for name := range a.own {
		a.names.Add(name)
	}
	if err := a.Load(ctx); err != nil && ctx.Err() == nil {
		a.config.Logger.Debug("APIServices could not be read", "err", err)
	}
	for prefix, f := range map[string]func(*sqlstore.Event){custom.DefinitionPrefix: a.definitionChanged, apiServicePrefix: a.changed} {
		if _, err := lister.Read(ctx, a.config.Store, prefix, f); err != nil && ctx.Err() == nil {
			a.config.Logger.Debug("objects could not be read", "prefix", prefix, "err", err)
		}
	}
}

// definitionChanged queues the group versions that a definition has or had.
func (a *APIServices) definitionChanged(ev *sqlstore.Event) {
	now, before := servedVersions(ev.Entry), servedVersions(ev.Prev)
	if ev.Type == sqlstore.Put && ev.Prev != nil && strings.Join(now, " ") == strings.Join(before, " ") {
		return
	}
	_, group, _ := strings.Cut(custom.DefinitionName(ev.Entry), ".")
	for _, version := range append(now, before...) {
		a.names.Add(version + "." + group)
	}
}

func servedVersions(e *sqlstore.Entry) (versions []string) {
	if e == nil {
		return nil
	}
	def, err := custom.DefinitionOf(e)
	if err != nil {
		return nil // Definitions has logged it
	}
	for _, v := range def.CRD.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

func apiServiceName(e *sqlstore.Entry) string { return strings.TrimPrefix(e.Key, apiServicePrefix) }

func decodeAPIService(e *sqlstore.Entry) (*apiregistration.APIService, error) {
	s := &apiregistration.APIService{}
	if err := json.Unmarshal(e.Value, s); err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.Key, err)
	}
	return s, nil
}
