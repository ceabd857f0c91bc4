package admit

import (
	"context"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/sqlstore"
)

// Options say which plugins run, and what they are made of.
type Options struct {
	WebhookOptions
	// Mapper knows the resources that there are.
	Mapper meta.RESTMapper
	// Stop ends the work of plugins.
	Stop <-chan struct{}

	// Enable names plugins to run besides DefaultNames, and Disable those not to.
	Enable, Disable []string
	// Config has configuration of plugins; nil: none.
	Config admission.ConfigProvider
}

// Plugins are the plugins that run. Most are about few resources and are asked about these
// only; what no plugin of its own has costs one look into a map.
type Plugins struct {
	any  Chain                          // those about all resources
	some map[schema.GroupResource]Chain // of resources that others are about: these and those
}

var (
	_ admission.MutationInterface   = &Plugins{}
	_ admission.ValidationInterface = &Plugins{}
)

// New returns the plugins that o enables. Those of upstream are made when they are asked
// for the first time, unless they were asked for by name or have a configuration, which may
// be wrong.
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
		if made[i], err = o.make(each, client); err != nil {
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

// make makes a plugin, or what makes it later.
func (o *Options) make(p *plugin, client connection) (admission.Interface, error) {
	config, err := o.configOf(p.name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	case p.made == nil:
		late := &late{plugin: p, o: o, upstream: sync.OnceValues(func() (admission.Interface, error) { return p.open(o, client) })}
		if p.off || config != nil {
			_, err = late.upstream()
		}
		return late, err
	case config != nil:
		return nil, fmt.Errorf("admission plugin %s: plinth has no configuration for it", p.name)
	}
	return p.made(o), nil
}

// configOf returns what somebody has configured for a plugin; nil: nothing.
func (o *Options) configOf(name string) (io.Reader, error) {
	if o.Config == nil {
		return nil, nil
	}
	return o.Config.ConfigFor(name)
}

// open makes upstream's plugin.
func (p *plugin) open(o *Options, connect connection) (admission.Interface, error) {
	client, err := connect()
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	}
	config, err := o.configOf(p.name)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
	}
	known := admission.NewPlugins()
	p.upstream(known)
	return known.InitPlugin(p.name, config, initializer.New(
		client, nil, &factory{store: o.Store}, o.Authorizer, utilfeature.DefaultFeatureGate, o.Stop, o.Mapper))
}

// Handles tells whether any plugin is interested in op.
func (p *Plugins) Handles(op admission.Operation) bool {
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

func (p *Plugins) about(a admission.Attributes, o admission.ObjectInterfaces) Chain {
	if chain, ok := p.some[today(a, o).GetResource().GroupResource()]; ok {
		return chain
	}
	return p.any
}

// Admit is Chain's.
func (p *Plugins) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.about(a, o).Admit(ctx, a, o)
}

// Validate is Chain's.
func (p *Plugins) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.about(a, o).Validate(ctx, a, o)
}

// anyUnder tells whether resource has an object whose key goes on with prefix.
func anyUnder(store *sqlstore.Store, resource, prefix string) (found bool) {
	from, to := sqlstore.RangeOf(resource + prefix)
	// In memory: there is no error.
	_ = store.Current(resource).Scan(context.Background(), from, to, func(*sqlstore.Entry) bool {
		found = true
		return false
	})
	return found
}
