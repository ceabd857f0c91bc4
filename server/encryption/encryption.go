package encryption

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/files"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Options are kube-apiserver's flags of the same names.
type Options struct {
	// ConfigFile is the file of the EncryptionConfiguration, --encryption-provider-config.
	// Empty: nothing is encrypted, and encrypted objects in the database cannot be read.
	ConfigFile string
	// AutomaticReload takes up changes of the file within a minute,
	// --encryption-provider-config-automatic-reload.
	AutomaticReload bool
}

// ErrReloadAlone is Open's error for AutomaticReload without ConfigFile.
var ErrReloadAlone = fielderr.Errorf("%v must be set with %v", fielderr.Name("AutomaticReload"), fielderr.Name("ConfigFile"))

// Providers encrypt and decrypt values. They are a sqlstore.Transformer.
type Providers struct {
	resources value.ResourceTransformers
	checks    []healthz.HealthChecker
	reload    *controller.DynamicEncryptionConfigContent // nil: the file is read once
	rules     map[schema.GroupResource]value.Transformer // nil with reload: they change

	file    string      // of the configuration
	refused atomic.Bool // the file has changed and cannot be used

	cancel  context.CancelFunc // ends what upstream has started for key services
	running sync.WaitGroup     // the reloader

	known sync.Map // prefix of a resource's keys → value.Transformer
}

// Open reads the configuration and connects to the key services that it names. serverID names
// this server in metrics. Open does not wait for key services that do not answer.
func Open(o Options, serverID string) (*Providers, error) {
	if o.ConfigFile == "" {
		if o.AutomaticReload {
			return nil, ErrReloadAlone
		}
		return &Providers{cancel: func() {}}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	first, closeFirst := context.WithCancel(ctx) // of the providers until the first reload
	config, err := encryptionconfig.LoadEncryptionConfig(first, o.ConfigFile, o.AutomaticReload, serverID)
	if err != nil {
		closeFirst()
		cancel()
		return nil, err
	}
	p := &Providers{cancel: func() { closeFirst(); cancel() }, checks: config.HealthChecks, file: o.ConfigFile}
	if !o.AutomaticReload {
		p.resources, p.rules = encryptionconfig.StaticTransformers(config.Transformers), config.Transformers
		return p, nil
	}
	// With reload there is always one check.
	dynamic := encryptionconfig.NewDynamicTransformers(config.Transformers, config.HealthChecks[0], closeFirst, config.KMSCloseGracePeriod)
	p.resources, p.checks = dynamic, []healthz.HealthChecker{dynamic}
	p.reload = controller.NewDynamicEncryptionConfiguration(
		"encryption-provider-config-automatic-reload-controller", o.ConfigFile, dynamic, config.EncryptionFileContentHash, serverID)
	p.running.Go(func() { p.reload.Run(ctx) })
	return p, nil
}

// Close ends what Open has started. It must be called after the store is closed.
func (p *Providers) Close() {
	if p == nil {
		return
	}
	p.cancel()
	p.running.Wait()
}

// Follow notes, until ctx ends, whether the configuration could be taken up as it is in the file: upstream's reloader, which
// takes it up, tells only its metrics.
func (p *Providers) Follow(ctx context.Context, logger *slog.Logger) {
	if p.reload == nil {
		return
	}
	var read []byte
	files.Follow(ctx, logger, "encryption configuration", []string{p.file}, func() error {
		text, err := os.ReadFile(p.file)
		if err == nil && (read == nil || !bytes.Equal(text, read)) {
			tried, cancel := context.WithCancel(ctx) // of what upstream starts for key services
			_, err = encryptionconfig.LoadEncryptionConfig(tried, p.file, true, "")
			cancel()
		}
		if err == nil {
			read = text
		}
		p.refused.Store(err != nil)
		return err
	})
}

// Refused returns the file of the configuration if it has changed and cannot be used.
func (p *Providers) Refused() (all []string) {
	if p.refused.Load() {
		all = append(all, "encryption configuration")
	}
	return all
}

// Check is the health check of a key service.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Checks are the health checks of the key services, which kube-apiserver has in /healthz and
// /readyz but not in /livez: kms-providers, or kms-provider-0 and so on for KMS v1 without
// reload. A check may wait for a key service, for its timeout in the configuration.
func (p *Providers) Checks() (checks []Check) {
	for _, c := range p.checks {
		checks = append(checks, Check{c.Name(), func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz/"+c.Name(), nil)
			if err != nil {
				return err
			}
			return c.Check(r)
		}})
	}
	return checks
}

// ToStorage implements sqlstore.Transformer.
func (p *Providers) ToStorage(ctx context.Context, key string, plain []byte) ([]byte, error) {
	if p.resources == nil {
		return plain, nil
	}
	return p.of(key).TransformToStorage(ctx, plain, value.DefaultContext(key))
}

// FromStorage implements sqlstore.Transformer. The key is authenticated with the value, so that
// the value of one object cannot be put in the place of another's.
//
// Upstream's aescbc panics on a value that was cut off. That is an error here, because one such row
// would end every server of the database.
func (p *Providers) FromStorage(ctx context.Context, key string, stored []byte) (plain []byte, stale bool, err error) {
	if p.resources == nil {
		return unencrypted.TransformFromStorage(ctx, stored, nil)
	}
	if !bytes.HasPrefix(stored, encrypted) && !bytes.HasPrefix(stored, plainObject) { // no key can be missing
		return nil, false, fmt.Errorf("%w: it is neither JSON nor encrypted", sqlstore.ErrUndecodable)
	}
	return open(ctx, p.of(key), key, stored)
}

func open(ctx context.Context, t value.Transformer, key string, stored []byte) (plain []byte, stale bool, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			plain, stale, err = nil, false, fmt.Errorf("%w: the stored data is damaged: %v", sqlstore.ErrUndecodable, reason)
		}
	}()
	return t.TransformFromStorage(ctx, stored, value.DefaultContext(key))
}

// What the values in plinth's log begin with. Those of a kube-apiserver may be protobuf, too.
var encrypted, plainObject = []byte("k8s:enc:"), []byte("{")

// FromUpstream returns the value of an object of a resource from what a kube-apiserver with the same
// configuration has stored under a key of its etcd.
func (p *Providers) FromUpstream(ctx context.Context, of schema.GroupResource, key string, stored []byte) ([]byte, error) {
	plain, _, err := open(ctx, p.ofResource(of), key, stored)
	return plain, err
}

// ToUpstream is the opposite of FromUpstream.
func (p *Providers) ToUpstream(ctx context.Context, of schema.GroupResource, key string, plain []byte) ([]byte, error) {
	return p.ofResource(of).TransformToStorage(ctx, plain, value.DefaultContext(key))
}

// unencrypted refuses to read values that are encrypted.
var unencrypted = identity.NewEncryptCheckTransformer()

// of returns what transforms the values of a key's resource.
func (p *Providers) of(key string) value.Transformer {
	prefix := object.ResourceOf(key)
	if t, ok := p.known.Load(prefix); ok {
		return t.(value.Transformer)
	}
	group, resource := object.SplitPrefix(prefix)
	t := p.ofResource(schema.GroupResource{Group: group, Resource: resource})
	p.known.Store(prefix, t)
	return t
}

func (p *Providers) ofResource(of schema.GroupResource) value.Transformer {
	if p.resources == nil || !p.mayHaveRule(of) {
		return unencrypted
	}
	return p.resources.TransformerForResource(of)
}

// mayHaveRule tells whether a rule may be about a resource. Values of others are left alone, which
// is quicker than asking upstream's transformers to leave them alone.
func (p *Providers) mayHaveRule(of schema.GroupResource) bool {
	if p.rules == nil {
		return true
	}
	for _, rule := range []schema.GroupResource{of, {Group: of.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if p.rules[rule] != nil {
			return true
		}
	}
	return false
}

var _ sqlstore.Transformer = (*Providers)(nil)

// metricPrefixes begin the names of upstream's metrics about encryption at rest.
var metricPrefixes = []string{
	"apiserver_storage_transformation_",
	"apiserver_storage_data_key_generation_",
	"apiserver_storage_envelope_transformation_",
	"apiserver_envelope_encryption_",
	"apiserver_encryption_config_controller_",
}

// UpstreamMetric knows the names of these metrics. They count all servers in the process.
func UpstreamMetric(name string) bool {
	return slices.ContainsFunc(metricPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
