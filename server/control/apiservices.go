package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	client "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/plinth-io/plinth/server/aggregate"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
)

const apiServicePrefix = "/registry/apiregistration.k8s.io/apiservices/"

// APIServices keeps the objects that say who serves which group version. Every server has
// one; what each of them writes is the same, and the first that does wins.
// https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
type APIServices struct {
	config Config
	api    client.APIServicesGetter
	own    map[string]*apiregistration.APIService // of the built-in group versions, by name
	names  workqueue.TypedRateLimitingInterface[string]
	remote *aggregate.Services

	mu      sync.Mutex
	atStart map[string]bool // those that were there when Run began
	done    map[string]bool // those that have been looked after once since
}

// NewAPIServices returns what will register the group versions of config's registry, and
// tell its Extensions, which must not be nil, which ones extension servers serve. It starts
// nothing.
func NewAPIServices(config Config) (*APIServices, error) {
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	api, err := client.NewForConfig(quiet(config.Client))
	if err != nil {
		return nil, fmt.Errorf("client of API services: %w", err)
	}
	a := &APIServices{
		config: config, api: api, own: map[string]*apiregistration.APIService{},
		names: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](againFirst, againMost)),
		done:  map[string]bool{}, remote: config.Extensions,
	}
	for _, s := range builtin.APIServices(config.Kinds.Set()) {
		a.own[s.Name] = s
	}
	return a, nil
}

// Load tells which group versions are served by extension servers, so that a server that
// is ready hands on their requests.
func (a *APIServices) Load(ctx context.Context) error {
	there := map[string]bool{}
	_, err := readCurrent(ctx, a.config.Store, apiServicePrefix, func(ev *sqlstore.Event) {
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

// changed is told of each change of an object.
func (a *APIServices) changed(ev *sqlstore.Event) {
	a.hand(ev)
	a.names.Add(apiServiceName(ev.Entry))
}

// hasService is in the JSON of all that extension servers serve, and of few others.
var hasService = []byte(`"service":{`)

// hand passes on what concerns extension servers.
func (a *APIServices) hand(ev *sqlstore.Event) {
	if ev.Type == sqlstore.Delete || !bytes.Contains(ev.Entry.JSON, hasService) {
		a.remote.Remove(apiServiceName(ev.Entry))
		return
	}
	object, err := decodeAPIService(ev.Entry)
	if err != nil {
		a.config.Logf("serve %s: %v", apiServiceName(ev.Entry), err)
		return
	}
	a.remote.Put(object)
}

// registerAtOnce is how many objects are written at once by a server that finds none, so
// that they share a transaction or two.
const registerAtOnce = 32

// Run keeps the objects until ctx ends.
func (a *APIServices) Run(ctx context.Context) {
	defer a.names.ShutDown()
	if err := a.begin(ctx); err != nil {
		a.config.Logf("register API services: %v", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer a.names.ShutDown()
	wg.Go(func() { work(ctx, a.config.Logf, "APIService", a.names, a.reconcile) })
	wg.Go(func() { a.followAgain(ctx, definitionPrefix, a.definitionChanged) })
	wg.Go(func() { a.watchOver(ctx) })
	a.followAgain(ctx, apiServicePrefix, a.changed)
}

// begin looks after all that there is to register. What fails is tried again.
func (a *APIServices) begin(ctx context.Context) error {
	a.atStart = map[string]bool{}
	_, err := readCurrent(ctx, a.config.Store, apiServicePrefix, func(ev *sqlstore.Event) {
		a.atStart[apiServiceName(ev.Entry)] = true
	})
	if err != nil {
		return endOf(ctx, err)
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

// followAgain follows a resource; when changes are lost, all is looked at again.
func (a *APIServices) followAgain(ctx context.Context, prefix string, f func(*sqlstore.Event)) {
	for ctx.Err() == nil {
		if err := follow(ctx, a.config.Store, prefix, func() {}, f); err != nil {
			a.config.Logf("follow %s: %v", prefix, err)
			a.again(ctx)
		}
		_ = sleepUnless(ctx, nil)
	}
}

// again looks at everything.
func (a *APIServices) again(ctx context.Context) {
	for name := range a.own {
		a.names.Add(name)
	}
	if err := a.Load(ctx); err != nil && ctx.Err() == nil {
		a.config.Logf("read API services: %v", err)
	}
	for prefix, f := range map[string]func(*sqlstore.Event){definitionPrefix: a.definitionChanged, apiServicePrefix: a.changed} {
		if _, err := readCurrent(ctx, a.config.Store, prefix, f); err != nil && ctx.Err() == nil {
			a.config.Logf("read %s: %v", prefix, err)
		}
	}
}

// definitionChanged looks at the group versions that a definition has, or had.
func (a *APIServices) definitionChanged(ev *sqlstore.Event) {
	now, before := servedVersions(ev.Entry), servedVersions(ev.Prev)
	if ev.Type == sqlstore.Put && ev.Prev != nil && strings.Join(now, " ") == strings.Join(before, " ") {
		return
	}
	_, group, _ := strings.Cut(definitionName(ev.Entry), ".")
	for _, version := range append(now, before...) {
		a.names.Add(version + "." + group)
	}
}

func servedVersions(e *sqlstore.Entry) (versions []string) {
	if e == nil {
		return nil
	}
	def, err := definitionOf(e)
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
	if err := json.Unmarshal(e.JSON, s); err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.Key, err)
	}
	return s, nil
}
