package admission

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// WebhookOptions say how webhooks are called.
type WebhookOptions struct {
	Store *sqlstore.Store
	// Client reaches the API as a user who may read namespaces.
	Client *clientrest.Config
	// Services resolves the Services that webhooks are named by.
	Services webhook.ServiceResolver
	// Dial connects to webhooks; nil: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Self calls a webhook whose Service is default/kubernetes, which is the API itself; nil: it is
	// called like any other.
	Self http.RoundTripper
	// Authorizer is asked by match conditions.
	Authorizer authorizer.Authorizer

	config *configuration // nil: there is none
}

// NewMutatingWebhooks returns the plugin that asks the webhooks of
// MutatingWebhookConfigurations. It is upstream's MutatingAdmissionWebhook.
func NewMutatingWebhooks(o WebhookOptions) apiadmission.MutationInterface {
	return &mutatingWebhooks{webhooks[v1.MutatingWebhookConfiguration, *mutating.Plugin]{
		o:              o,
		configurations: newView[v1.MutatingWebhookConfiguration](o.Store, object.Prefix(v1.GroupName, "mutatingwebhookconfigurations")),
		make: func() (*mutating.Plugin, *generic.Webhook, error) {
			plugin, err := mutating.NewMutatingWebhook(o.config.reader())
			if err != nil {
				return nil, nil, err
			}
			return plugin, plugin.Webhook, nil
		},
	}}
}

// NewValidatingWebhooks returns the plugin that asks the webhooks of
// ValidatingWebhookConfigurations. It is upstream's ValidatingAdmissionWebhook.
func NewValidatingWebhooks(o WebhookOptions) apiadmission.ValidationInterface {
	return &validatingWebhooks{webhooks[v1.ValidatingWebhookConfiguration, *validating.Plugin]{
		o:              o,
		configurations: newView[v1.ValidatingWebhookConfiguration](o.Store, object.Prefix(v1.GroupName, "validatingwebhookconfigurations")),
		make: func() (*validating.Plugin, *generic.Webhook, error) {
			plugin, err := validating.NewValidatingAdmissionWebhook(o.config.reader())
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

func (w *mutatingWebhooks) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	plugin, err := w.current(ctx)
	if plugin == nil || err != nil {
		return err
	}
	return plugin.Admit(ctx, a, o)
}

type validatingWebhooks struct {
	webhooks[v1.ValidatingWebhookConfiguration, *validating.Plugin]
}

func (w *validatingWebhooks) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	plugin, err := w.current(ctx)
	if plugin == nil || err != nil {
		return err
	}
	return plugin.Validate(ctx, a, o)
}

// webhooks is what both plugins have in common: C is the type of their configurations, P
// upstream's plugin. The plugin is built when the first configuration is stored, which most servers
// never have, or at the start if a file configures it. A configuration takes effect the moment it is stored: each write checks
// whether the plugin has missed a change.
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

// Handles returns true for creates, updates and deletes.
func (w *webhooks[C, P]) Handles(op apiadmission.Operation) bool {
	return op == apiadmission.Create || op == apiadmission.Update || op == apiadmission.Delete
}

// current returns the plugin with all configurations, or zero if there is none to ask.
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

// learn tells the plugin of all changes. The caller holds w.mu. If a configuration cannot be read, because its key is
// missing or it is damaged, learn returns an error, and writes are refused: it is not known what the configuration
// forbids.
func (w *webhooks[C, P]) learn() (plugin P, err error) {
	now, err := w.configurations.now()
	if err != nil {
		return plugin, notReady(err)
	}
	if w.plugin == plugin {
		if len(now) == 0 {
			return plugin, nil
		}
		if err := w.open(); err != nil {
			return plugin, err
		}
	}
	w.configurations.notify(now)
	if len(now) == 0 && w.o.config.manifests() == nil {
		return plugin, nil
	}
	return w.plugin, nil
}

// start makes the plugin of a server whose files configure it, so that an error ends the start.
func (w *webhooks[C, P]) start() error {
	if w.o.config == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open()
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
	if m := w.o.config.manifests(); m != nil {
		hook.SetAPIServerID(m.Identity)
		hook.SetDrainedNotification(m.Stop)
		any(plugin).(initializer.WantsManifestLoaders).SetManifestLoaders(webhookLoaders(m))
	}
	hook.SetExcludedAdmissionResources(exclusion.Excluded())
	hook.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	hook.SetExternalKubeClientSet(client)
	hook.SetExternalKubeInformerFactory(w.configurations.factory())
	hook.SetUnconditionalAuthorizer(w.o.Authorizer)
	hook.SetServiceResolver(w.o.Services)
	hook.SetAuthenticationInfoResolverWrapper(w.o.connected)
	hook.SetAuthenticationInfoResolverWrapper(withBounds)
	if err := hook.ValidateInitialization(); err != nil {
		return err
	}
	w.plugin = plugin
	return nil
}
