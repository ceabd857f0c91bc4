package builtin_test

import (
	"net"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/generic"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/features"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	admissionregistration "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	internal "k8s.io/kubernetes/pkg/registry/apiserverinternal/rest"
	apps "k8s.io/kubernetes/pkg/registry/apps/rest"
	authentication "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorization "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscaling "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batch "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificates "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordination "k8s.io/kubernetes/pkg/registry/coordination/rest"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"
	endpointstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	core "k8s.io/kubernetes/pkg/registry/core/rest"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrol "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	lifecycle "k8s.io/kubernetes/pkg/registry/lifecycle/rest"
	networking "k8s.io/kubernetes/pkg/registry/networking/rest"
	node "k8s.io/kubernetes/pkg/registry/node/rest"
	policy "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbac "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resource "k8s.io/kubernetes/pkg/registry/resource/rest"
	scheduling "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
	migration "k8s.io/kubernetes/pkg/registry/storagemigration/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// These tests read what kube-apiserver installs from its own storage constructors. The
// constructors get a storage that must never be called.

type neverCalled struct{ storage.Interface }

func (neverCalled) ReadinessCheck() error { return nil }

type restOptions struct{}

func (restOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	decorator := func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
		func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		return neverCalled{}, func() {}, nil
	}
	return generic.RESTOptions{
		StorageConfig:  &storagebackend.ConfigForResource{GroupResource: resource},
		Decorator:      decorator,
		ResourcePrefix: resource.String(),
	}, nil
}

type provider interface {
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// upstream returns kube-apiserver's storages by group, version and "resource" or
// "resource/subresource".
func upstream(t *testing.T, settings map[string]string) map[schema.GroupVersion]map[string]apirest.Storage {
	t.Helper()
	enabled, err := resourceconfig.MergeAPIResourceConfigs(controlplane.DefaultAPIResourceConfigSource(), settings, legacyscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	never := authorizerfactory.NewAlwaysDenyAuthorizer()
	loopback := &clientrest.Config{Host: "127.0.0.1:0"}
	client := kubernetes.NewForConfigOrDie(loopback)
	all := map[schema.GroupVersion]map[string]apirest.Storage{}
	for _, p := range []provider{
		&core.GenericConfig{},
		authentication.RESTStorageProvider{},
		authorization.RESTStorageProvider{Authorizer: never, RuleResolver: never},
		autoscaling.RESTStorageProvider{},
		batch.RESTStorageProvider{},
		certificates.RESTStorageProvider{Authorizer: never},
		coordination.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		lifecycle.RESTStorageProvider{},
		networking.RESTStorageProvider{},
		node.RESTStorageProvider{},
		policy.RESTStorageProvider{},
		rbac.RESTStorageProvider{Authorizer: never},
		scheduling.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
		flowcontrol.RESTStorageProvider{},
		apps.StorageProvider{},
		admissionregistration.RESTStorageProvider{Authorizer: never, DiscoveryClient: clientdiscovery.NewDiscoveryClient(client.RESTClient())},
		eventsrest.RESTStorageProvider{},
		resource.RESTStorageProvider{NamespaceClient: client.CoreV1().Namespaces(), Authorizer: never},
		internal.StorageProvider{},
		migration.RESTStorageProvider{},
	} {
		info, err := p.NewRESTStorage(enabled, restOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for version, storages := range info.VersionedResourcesStorageMap {
			if len(storages) > 0 {
				gv := schema.GroupVersion{Group: info.PrioritizedVersions[0].Group, Version: version}
				if storages = living(gv, storages); len(storages) > 0 {
					all[gv] = storages
				}
			}
		}
	}
	for name, s := range coreStorages(t) {
		if all[schema.GroupVersion{Version: "v1"}] == nil {
			break
		}
		all[schema.GroupVersion{Version: "v1"}][name] = s
	}
	return all
}

// coreStorages are the storages of the core group that need a kubelet or allocators.
func coreStorages(t *testing.T) map[string]apirest.Storage {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pods, err := podstore.NewStorage(restOptions{}, nil, nil, nil, nil)
	check(err)
	nodes, err := nodestore.NewStorage(restOptions{}, kubeletclient.KubeletClientConfig{}, nil)
	check(err)
	_, cidr, _ := net.ParseCIDR("10.0.0.0/24")
	ips, err := ipallocator.NewInMemory(cidr)
	check(err)
	services, serviceStatus, _, err := servicestore.NewREST(restOptions{}, api.IPv4Protocol, map[api.IPFamily]ipallocator.Interface{api.IPv4Protocol: ips}, nil, nil, nil, nil)
	check(err)
	controllers, err := controllerstore.NewStorage(restOptions{})
	check(err)
	templates, err := podtemplatestore.NewREST(restOptions{})
	check(err)
	endpoints, err := endpointstore.NewREST(restOptions{})
	check(err)
	limits, err := limitrangestore.NewREST(restOptions{})
	check(err)
	volumes, volumeStatus, err := pvstore.NewREST(restOptions{})
	check(err)
	claims, claimStatus, err := pvcstore.NewREST(restOptions{})
	check(err)
	return map[string]apirest.Storage{
		"pods": pods.Pod, "pods/status": pods.Status, "pods/ephemeralcontainers": pods.EphemeralContainers, "pods/resize": pods.Resize,
		"nodes": nodes.Node, "nodes/status": nodes.Status,
		"services": services, "services/status": serviceStatus,
		"replicationcontrollers": controllers.Controller, "replicationcontrollers/status": controllers.Status, "replicationcontrollers/scale": controllers.Scale,
		"componentstatuses": componentstatus.NewStorage(nil),
		"podtemplates":      templates, "endpoints": endpoints, "limitranges": limits,
		"persistentvolumes": volumes, "persistentvolumes/status": volumeStatus,
		"persistentvolumeclaims": claims, "persistentvolumeclaims/status": claimStatus,
	}
}

// living leaves out the storages that kube-apiserver removes because this release no longer
// serves them (apiserver/pkg/server/deleted_kinds.go).
func living(gv schema.GroupVersion, storages map[string]apirest.Storage) map[string]apirest.Storage {
	kept := map[string]apirest.Storage{}
	for path, s := range storages {
		versioned, err := legacyscheme.Scheme.ConvertToVersion(s.New(), gv)
		r, ok := versioned.(interface{ APILifecycleRemoved() (int, int) })
		if err == nil && ok {
			if major, minor := r.APILifecycleRemoved(); major == 1 && strconv.Itoa(minor) <= kind.Minor {
				continue
			}
		}
		kept[path] = s
	}
	return kept
}

func TestServedVersions(t *testing.T) {
	served := map[schema.GroupVersion]bool{}
	for _, k := range builtin.Kinds(builtin.Options{}) {
		for _, v := range k.Versions {
			served[schema.GroupVersion{Group: k.Group, Version: v.Name}] = true
		}
	}
	// These two groups have servers of their own in kube-apiserver.
	want := map[schema.GroupVersion]bool{apiextensionsv1.SchemeGroupVersion: true, apiregistrationv1.SchemeGroupVersion: true}
	for gv, enabled := range controlplane.DefaultAPIResourceConfigSource().GroupVersionConfigs {
		if enabled {
			want[gv] = true
		}
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("group versions (-upstream +plinth):\n%s", diff)
	}
}

// declared are the properties of a resource that discovery and delete show.
type declared struct {
	Kind, Singular         string
	Namespaced             bool
	ShortNames, Categories []string
	Verbs                  []string
	ReturnDeleted          bool
	Subresources           map[string][]string
}

func TestResourcesMatchUpstream(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"default":             nil,
		"everything":          {"api/all": "true"},
		"beta":                {"api/beta": "true"},
		"no beta":             {"api/all": "true", "api/beta": "false"},
		"only alpha":          {"api/all": "false", "api/alpha": "true"},
		"no apps":             {"apps/v1": "false"},
		"old autoscaling":     {"autoscaling/v2": "false"},
		"all but deployments": {"apps/v1/deployments": "false"},
		"one claim version":   {"resource.k8s.io/v1beta1": "true"},
		"claims alone":        {"resource.k8s.io/v1beta1/resourceclaims": "true"},
		"special counts more": {"api/all": "false", "batch/v1": "true", "batch/v1/cronjobs": "false"},
		"only core":           {"api/all": "false", "/v1": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			enabled, err := builtin.ParseEnabled(settings, builtin.Forward{})
			if err != nil {
				t.Fatal(err)
			}
			compareUpstream(t, settings, builtin.Kinds(builtin.Options{Enabled: enabled}))
		})
	}
}

// TestGatedResourcesMatchUpstream has the resources that need a feature gate which is off by default.
func TestGatedResourcesMatchUpstream(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.GenericWorkload: true,
		features.TopologyAwareWorkloadScheduling: true, features.CompositePodGroup: true,
	})
	settings := map[string]string{"api/all": "true"}
	enabled, err := builtin.ParseEnabled(settings, builtin.Forward{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := builtin.Kinds(builtin.Options{Enabled: enabled})
	compareUpstream(t, settings, kinds)
	for _, k := range kinds {
		if k.Group != "lifecycle.k8s.io" && k.Group != "scheduling.k8s.io" {
			continue
		}
		for seed := range int64(10) {
			roundTrip(t, k, randomObject(t, k, seed))
		}
	}
}

func compareUpstream(t *testing.T, settings map[string]string, kinds []*kind.Kind) {
	t.Helper()
	ours, want := map[schema.GroupVersion]map[string]declared{}, map[schema.GroupVersion]map[string]declared{}
	for _, k := range kinds {
		if k.Group == apiextensionsv1.GroupName || k.Group == apiregistrationv1.GroupName {
			continue // they have servers of their own in kube-apiserver
		}
		for _, v := range k.Versions {
			gv := k.GVK(v.Name).GroupVersion()
			if ours[gv] == nil {
				ours[gv] = map[string]declared{}
			}
			ours[gv][k.Resource] = declare(k, v.Name)
		}
	}
	for gv, storages := range upstream(t, settings) {
		want[gv] = declareUpstream(t, gv, storages)
	}
	if diff := cmp.Diff(want, ours, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-upstream +plinth):\n%s", diff)
	}
}

func declare(k *kind.Kind, version string) declared {
	d := declared{
		Kind: k.Kind, Singular: k.Singular, Namespaced: k.Namespaced, ShortNames: k.ShortNames, Categories: k.Categories,
		Verbs: k.Verbs, ReturnDeleted: k.ReturnsDeleted(version), Subresources: map[string][]string{},
	}
	for name, s := range k.Subresources {
		d.Subresources[name] = s.Verbs
	}
	return d
}

func declareUpstream(t *testing.T, gv schema.GroupVersion, storages map[string]apirest.Storage) map[string]declared {
	t.Helper()
	all := map[string]declared{}
	for path, s := range storages {
		if strings.Contains(path, "/") {
			continue
		}
		d := declared{
			Kind:         kindOf(t, gv, s),
			Singular:     s.(apirest.SingularNameProvider).GetSingularName(),
			Namespaced:   s.(apirest.Scoper).NamespaceScoped(),
			Verbs:        verbsOf(s),
			Subresources: map[string][]string{},
		}
		if p, ok := s.(apirest.ShortNamesProvider); ok {
			d.ShortNames = p.ShortNames()
		}
		if p, ok := s.(apirest.CategoriesProvider); ok {
			d.Categories = p.Categories()
		}
		d.ReturnDeleted = returnsDeleted(reflect.ValueOf(s))
		for sub, s := range storages {
			if name, ok := strings.CutPrefix(sub, path+"/"); ok {
				d.Subresources[name] = verbsOf(s)
			}
		}
		all[path] = d
	}
	return all
}

func kindOf(t *testing.T, gv schema.GroupVersion, s apirest.Storage) string {
	t.Helper()
	if p, ok := s.(apirest.GroupVersionKindProvider); ok {
		return p.GroupVersionKind(gv).Kind
	}
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(s.New())
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0].Kind
}

func verbsOf(s apirest.Storage) []string {
	var verbs []string
	add := func(ok bool, verb string) {
		if ok {
			verbs = append(verbs, verb)
		}
	}
	_, ok := s.(apirest.Creater)
	add(ok, "create")
	_, ok = s.(apirest.GracefulDeleter)
	add(ok, "delete")
	_, ok = s.(apirest.CollectionDeleter)
	add(ok, "deletecollection")
	_, ok = s.(apirest.Getter)
	add(ok, "get")
	_, ok = s.(apirest.Lister)
	add(ok, "list")
	_, ok = s.(apirest.Patcher)
	add(ok, "patch")
	_, ok = s.(apirest.Updater)
	add(ok, "update")
	_, ok = s.(apirest.Watcher)
	add(ok, "watch")
	sort.Strings(verbs)
	return verbs
}

// returnsDeleted looks through upstream's wrappers for the field of the store inside.
func returnsDeleted(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	if f := v.FieldByName("ReturnDeletedObject"); f.IsValid() {
		return f.Bool()
	}
	for _, name := range []string{"store", "StandardStorage"} {
		if f := v.FieldByName(name); f.IsValid() {
			return returnsDeleted(f)
		}
	}
	return false
}
