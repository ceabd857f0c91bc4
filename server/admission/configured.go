package admission

import (
	"bytes"
	"io"

	v1 "k8s.io/api/admissionregistration/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	policyconfig "k8s.io/apiserver/pkg/admission/plugin/policy/config"
	webhookconfig "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	"k8s.io/kubernetes/pkg/admission/plugin/webhook/manifest/loader"

	"github.com/plinth-io/plinth/server/admission/manifests"
)

// configuration is what --admission-control-config-file says about a plugin of this package.
type configuration struct {
	data  []byte
	files *manifests.Manifests
}

// reader returns the configuration for upstream's plugin; nil: there is none.
func (c *configuration) reader() io.Reader {
	if c == nil {
		return nil
	}
	return bytes.NewReader(c.data)
}

// manifests are the files that the configuration names; nil: none.
func (c *configuration) manifests() *manifests.Manifests {
	if c == nil || c.files.Dir == "" {
		return nil
	}
	return c.files
}

// configure reads the configuration of a plugin.
func (o *Options) configure(p *plugin, from io.Reader) (*configuration, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	dir, err := p.manifests(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return &configuration{data, &manifests.Manifests{Dir: dir, Identity: o.Identity, Stop: o.Stop}}, nil
}

// Where plugins find manifests, as their configurations say.
func validatingManifests(config io.Reader) (string, error) {
	c, err := policyconfig.LoadValidatingConfig(config)
	return c.StaticManifestsDir, err
}

func mutatingManifests(config io.Reader) (string, error) {
	c, err := policyconfig.LoadMutatingConfig(config)
	return c.StaticManifestsDir, err
}

func webhookManifests(config io.Reader) (string, error) {
	c, err := webhookconfig.LoadConfig(config)
	if err != nil {
		return "", err
	}
	return c.StaticManifestsDir, nil
}

// mutatingWebhooksOf and validatingWebhooksOf build the plugins that ask webhooks.
func mutatingWebhooksOf(o *Options, c *configuration) (apiadmission.Interface, error) {
	with := o.WebhookOptions
	with.config = c
	hooks := NewMutatingWebhooks(with).(*mutatingWebhooks)
	return hooks, hooks.start()
}

func validatingWebhooksOf(o *Options, c *configuration) (apiadmission.Interface, error) {
	with := o.WebhookOptions
	with.config = c
	hooks := NewValidatingWebhooks(with).(*validatingWebhooks)
	return hooks, hooks.start()
}

// webhookLoaders are upstream's loaders. They report to m whether the files could be used.
func webhookLoaders(m *manifests.Manifests) *initializer.ManifestLoaders {
	return &initializer.ManifestLoaders{
		LoadMutatingWebhookManifests: func(dir string) (all []*v1.MutatingWebhookConfiguration, hash string, err error) {
			err = m.Load(func() (string, error) {
				found, err := loader.LoadMutatingManifests(dir)
				if err == nil {
					all, hash = found.Configurations, found.Hash
				}
				return hash, err
			})
			return all, hash, err
		},
		LoadValidatingWebhookManifests: func(dir string) (all []*v1.ValidatingWebhookConfiguration, hash string, err error) {
			err = m.Load(func() (string, error) {
				found, err := loader.LoadValidatingManifests(dir)
				if err == nil {
					all, hash = found.Configurations, found.Hash
				}
				return hash, err
			})
			return all, hash, err
		},
	}
}

// Refused returns the plugins whose manifests have changed and cannot be used.
func (p *Plugins) Refused() (all []string) {
	for _, f := range p.files {
		if f.manifests.Refused() {
			all = append(all, "manifests of "+f.plugin)
		}
	}
	return all
}

// followed are the manifests of a plugin.
type followed struct {
	plugin    string
	manifests *manifests.Manifests
}
