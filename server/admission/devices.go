package admission

import (
	"context"
	"reflect"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// What quotas of devices need: the classes of devices, and the claims of a pod.

var (
	classPrefix = object.Prefix(resourcev1.GroupName, "deviceclasses")
	claimPrefix = object.Prefix(resourcev1.GroupName, "resourceclaims")
)

// upstreamQuota is upstream's plugin. Before it decides about a write, its rules learn of changed device classes.
type upstreamQuota struct {
	*resourcequota.QuotaAdmission
	classes *view[resourcev1.DeviceClass]

	mu      sync.Mutex // held while the rules learn of changes
	through int64      // when the classes that they know were last changed
}

// Validate implements admission.ValidationInterface.
func (q *upstreamQuota) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if err := q.learn(); err != nil {
		return notReady(err)
	}
	return q.QuotaAdmission.Validate(ctx, a, o)
}

func (q *upstreamQuota) learn() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	changed := q.classes.store.ChangedAt(classPrefix)
	if changed == q.through || q.classes.handler == nil { // nil: no rule counts devices
		return nil
	}
	now, err := q.classes.now()
	if err != nil {
		return err
	}
	q.classes.notify(now)
	q.through = changed
	return nil
}

// factory returns the factory for the rules.
func (q *upstreamQuota) factory(store *sqlstore.Store) *factory {
	f := q.classes.factory()
	f.own[reflect.TypeFor[*resourcev1.ResourceClaim]()] = &claims{indexer: &claimIndexer{Indexer: lister.New[resourcev1.ResourceClaim](store, claimPrefix)}}
	return f
}

// claims is the informer of claims of devices. The embedded interface is nil.
type claims struct {
	cache.SharedIndexInformer
	indexer *claimIndexer
}

// AddIndexers takes the only indexers besides that of namespaces.
func (c *claims) AddIndexers(indexers cache.Indexers) error {
	c.indexer.more = indexers
	return nil
}

// GetIndexer returns the claims.
func (c *claims) GetIndexer() cache.Indexer { return c.indexer }

// claimIndexer finds claims by indexes whose values are NAMESPACE/SOMETHING. It looks at all claims of a namespace:
// that is seldom asked for.
type claimIndexer struct {
	cache.Indexer
	more cache.Indexers
}

// ByIndex implements cache.Indexer.
func (c *claimIndexer) ByIndex(name, value string) ([]any, error) {
	valuesOf := c.more[name]
	if valuesOf == nil {
		return c.Indexer.ByIndex(name, value)
	}
	namespace, _, _ := strings.Cut(value, "/")
	all, err := c.Indexer.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, err
	}
	return lister.Having(all, valuesOf, value)
}

// served tells which resources there are. The embedded interface is nil: quotas ask for nothing else.
type served struct {
	storage.APIResourceConfigSource
	kinds *kind.Registry
}

// ResourceEnabled implements storage.APIResourceConfigSource.
func (s served) ResourceEnabled(r schema.GroupVersionResource) bool {
	return s.kinds.Lookup(r.Group, r.Version, r.Resource) != nil
}
