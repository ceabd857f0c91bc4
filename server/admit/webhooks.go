package admit

import (
	"context"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/sqlstore"
)

// WebhookOptions are what webhooks are called with.
type WebhookOptions struct {
	Store *sqlstore.Store
	// Client reaches the API, as somebody who may read namespaces.
	Client *rest.Config
	// Services finds the webhooks that are named by their Service.
	Services webhook.ServiceResolver
	// Self is how a webhook is called that the API itself serves, by way of its own Service
	// default/kubernetes; optional.
	Self *rest.Config
	// Authorizer answers the questions that match conditions ask.
	Authorizer authorizer.Authorizer
}

const configurations = "/registry/admissionregistration.k8s.io/"

// NewMutatingWebhooks returns the plugin that asks the webhooks of
// MutatingWebhookConfigurations. It is upstream's MutatingAdmissionWebhook.
func NewMutatingWebhooks(o WebhookOptions) admission.MutationInterface {
	return &mutatingWebhooks{webhooks[v1.MutatingWebhookConfiguration, *mutating.Plugin]{
		o:              o,
		configurations: newView[v1.MutatingWebhookConfiguration](o.Store, configurations+"mutatingwebhookconfigurations/"),
		make: func() (*mutating.Plugin, *generic.Webhook, error) {
			plugin, err := mutating.NewMutatingWebhook(nil)
			if err != nil {
				return nil, nil, err
			}
			return plugin, plugin.Webhook, nil
		},
	}}
}

// NewValidatingWebhooks returns the plugin that asks the webhooks of
// ValidatingWebhookConfigurations. It is upstream's ValidatingAdmissionWebhook.
func NewValidatingWebhooks(o WebhookOptions) admission.ValidationInterface {
	return &validatingWebhooks{webhooks[v1.ValidatingWebhookConfiguration, *validating.Plugin]{
		o:              o,
		configurations: newView[v1.ValidatingWebhookConfiguration](o.Store, configurations+"validatingwebhookconfigurations/"),
		make: func() (*validating.Plugin, *generic.Webhook, error) {
			plugin, err := validating.NewValidatingAdmissionWebhook(nil)
			if err != nil {
				return nil, nil, err
			}
			return plugin, plugin.Webhook, nil
		},
	}}
}

type mutatingWebhooks struct {
	webhooks[v1.MutatingWebhookConfiguration, *mutating.Plugin]
}

func (w *mutatingWebhooks) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := w.current(ctx)
	if plugin == nil || err != nil {
		return err
	}
	return plugin.Admit(ctx, a, o)
}

type validatingWebhooks struct {
	webhooks[v1.ValidatingWebhookConfiguration, *validating.Plugin]
}

func (w *validatingWebhooks) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := w.current(ctx)
	if plugin == nil || err != nil {
		return err
	}
	return plugin.Validate(ctx, a, o)
}

// webhooks is what both plugins have in common: C is the kind of their configurations and
// P upstream's plugin. That one is made when there is a configuration for the first time:
// most servers never have any. A configuration counts from the moment it is stored, because
// each write looks whether there is a change that the plugin has not heard of.
type webhooks[C any, P comparable] struct {
	o    WebhookOptions
	make func() (P, *generic.Webhook, error)

	known atomic.Pointer[known[P]]

	mu             sync.Mutex // held while the plugin learns of changes
	plugin         P          // zero until there is a configuration
	configurations *view[C]
}

// known is a plugin that knows all configurations up to a revision.
type known[P comparable] struct {
	revision int64
	plugin   P // zero if there are no configurations
}

// Handles says that all writes matter.
func (w *webhooks[C, P]) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update || op == admission.Delete
}

// current returns the plugin, up to date, or zero if there is nothing to ask.
func (w *webhooks[C, P]) current(ctx context.Context) (plugin P, err error) {
	if unasked(ctx) {
		return plugin, nil
	}
	revision := w.o.Store.ChangedAt(w.configurations.prefix)
	if k := w.known.Load(); k != nil && k.revision == revision {
		return k.plugin, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if plugin, err = w.learn(); err == nil {
		w.known.Store(&known[P]{revision, plugin})
	}
	return plugin, err
}

// learn tells the plugin of all changes. w.mu is held.
func (w *webhooks[C, P]) learn() (plugin P, err error) {
	now := w.configurations.now()
	if w.plugin == plugin {
		if len(now) == 0 {
			return plugin, nil
		}
		if err := w.open(); err != nil {
			return plugin, err
		}
	}
	w.configurations.notify(now)
	if len(now) == 0 {
		return plugin, nil
	}
	return w.plugin, nil
}

// open makes the plugin.
func (w *webhooks[C, P]) open() error {
	plugin, hook, err := w.make()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(w.o.Client)
	if err != nil {
		return err
	}
	hook.SetExternalKubeClientSet(client)
	hook.SetExternalKubeInformerFactory(w.configurations.factory())
	hook.SetAuthorizer(w.o.Authorizer)
	hook.SetServiceResolver(w.o.Services)
	hook.SetAuthenticationInfoResolverWrapper(withBounds)
	if w.o.Self != nil {
		hook.SetAuthenticationInfoResolverWrapper(webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, w.o.Self, nil))
	}
	if err := hook.ValidateInitialization(); err != nil {
		return err
	}
	w.plugin = plugin
	return nil
}
