package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options say which plugins run, and what they work with.
type Options struct {
	WebhookOptions
	// Mapper knows all resources.
	Mapper meta.RESTMapper
	// Kinds are the resources that policies are about.
	Kinds *kind.Registry
	// Stop ends the work of plugins.
	Stop <-chan struct{}
	// Reservations are told of writes that quotas have counted; nil: nobody is.
	Reservations *Reservations

	// Enable names plugins to run besides DefaultNames, Disable plugins not to run.
	Enable, Disable []string
	// Identity is the server's name in metrics.
	Identity string
	// Config has the configuration of plugins; nil: there is none.
	Config apiadmission.ConfigProvider
}

// Plugins are the plugins that run. Most of them look at a few resources and are asked about
// those only. For all other resources this costs one look into a map.
type Plugins struct {
	any  Chain                          // plugins for all resources
	some map[schema.GroupResource]Chain // for resources that have plugins of their own: these, and those for all

	files []followed
}

var (
	_ apiadmission.MutationInterface   = &Plugins{}
	_ apiadmission.ValidationInterface = &Plugins{}
)

// New returns the plugins that o enables. Upstream's plugins are built at their first use,
// unless they are enabled by name or have a configuration: then an error must end the start.
func New(o Options) (*Plugins, error) {
	if err := Check(o.Enable, o.Disable); err != nil {
		return nil, err
	}
	plugins, client := chosen(o.Enable, o.Disable), sync.OnceValues(func() (*kubernetes.Clientset, error) {
		return kubernetes.NewForConfig(o.Client)
	})
	p, made := &Plugins{some: map[schema.GroupResource]Chain{}}, make(Chain, len(plugins))
	for i, each := range plugins {
		var err error
		if made[i], err = p.make(&o, each, client); err != nil {
			return nil, err
		}
		for _, resource := range each.resources {
			p.some[schema.ParseGroupResource(resource)] = nil
		}
	}
	for i, each := range plugins {
		if each.resources == nil {
			p.any = append(p.any, made[i])
		}
		for resource := range p.some {
			if each.handles(resource) {
				p.some[resource] = append(p.some[resource], made[i])
			}
		}
	}
	return p, nil
}

// connection is a client that is made once.
type connection func() (*kubernetes.Clientset, error)

// make builds the plugin, or a late one that builds it at its first use.
func (all *Plugins) make(o *Options, p *plugin, client connection) (apiadmission.Interface, error) {
	config, err := o.configOf(p.name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	case p.made == nil:
		late := &late{plugin: p, o: o, upstream: sync.OnceValues(func() (apiadmission.Interface, error) { return p.open(o, client) })}
		if p.off || config != nil {
			_, err = late.upstream()
		}
		return late, err
	}
	made, err := all.own(o, p, config)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	}
	return made, nil
}

// own builds a plugin of this package.
func (all *Plugins) own(o *Options, p *plugin, config io.Reader) (apiadmission.Interface, error) {
	if config == nil {
		return p.made(o, nil)
	}
	if p.manifests == nil {
		return nil, errors.New("plinth has no configuration for it")
	}
	c, err := o.configure(p, config)
	if err != nil {
		return nil, err
	}
	all.files = append(all.files, followed{p.name, c.files})
	return p.made(o, c)
}

// configOf returns the configuration of a plugin, nil if there is none.
func (o *Options) configOf(name string) (io.Reader, error) {
	if o.Config == nil {
		return nil, nil
	}
	return o.Config.ConfigFor(name)
}

// open builds upstream's plugin.
func (p *plugin) open(o *Options, connect connection) (apiadmission.Interface, error) {
	client, err := connect()
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	}
	config, err := o.configOf(p.name)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	}
	known := apiadmission.NewPlugins()
	p.upstream(known)
	return known.InitPlugin(p.name, config, initializer.New(
		client, nil, &factory{store: o.Store}, o.Authorizer, utilfeature.DefaultFeatureGate,
		kind.Effective(), o.Stop, o.Mapper))
}

// Handles tells whether any plugin is interested in op.
func (p *Plugins) Handles(op apiadmission.Operation) bool {
	if p.any.Handles(op) {
		return true
	}
	for _, chain := range p.some {
		if chain.Handles(op) {
			return true
		}
	}
	return false
}

func (p *Plugins) about(a apiadmission.Attributes, o apiadmission.ObjectInterfaces) Chain {
	if chain, ok := p.some[today(a, o).GetResource().GroupResource()]; ok {
		return chain
	}
	return p.any
}

// Admit asks the plugins for the resource, as Chain.Admit does.
func (p *Plugins) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.about(a, o).Admit(ctx, a, o)
}

// Validate asks the plugins for the resource, as Chain.Validate does.
func (p *Plugins) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	return p.about(a, o).Validate(ctx, a, o)
}

// anyUnder tells whether there is an object whose key is resource, then prefix, then anything.
func anyUnder(store *sqlstore.Store, resource, prefix string) (found bool) {
	from, to := changelog.RangeOf(resource + prefix)
	// In memory: there is no error.
	_ = store.Current(resource).Scan(context.Background(), from, to, func(*sqlstore.Entry) bool {
		found = true
		return false
	})
	return found
}
