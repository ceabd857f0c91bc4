package admission

import (
	"context"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/admission/admit"
	"k8s.io/kubernetes/plugin/pkg/admission/alwayspullimages"
	"k8s.io/kubernetes/plugin/pkg/admission/antiaffinity"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/deny"
	"k8s.io/kubernetes/plugin/pkg/admission/eventratelimit"
	"k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration"
	"k8s.io/kubernetes/plugin/pkg/admission/gc"
	"k8s.io/kubernetes/plugin/pkg/admission/imagepolicy"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/namespace/autoprovision"
	"k8s.io/kubernetes/plugin/pkg/admission/namespace/exists"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips"
	"k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podnodeselector"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
	"k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/scheduling/podgroupprotection"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"

	"github.com/plinth-io/plinth/server/admission/policies"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// plugin describes a plugin that can be enabled.
type plugin struct {
	name string
	off  bool // does not run unless it is enabled by name

	// The resources (RESOURCE.GROUP; nil: all) and operations that upstream's plugin looks at. For others it is neither
	// asked nor built.
	resources  []string
	operations []apiadmission.Operation
	upstream   func(*apiadmission.Plugins) // registers upstream's plugin

	concerns func(user.Info) bool                                             // tells whether the plugin must be asked about a user's writes; nil: always
	needed   func(o *Options, namespace string) bool                          // tells whether the plugin must be asked in a namespace; nil: always
	before   func(ctx context.Context, o *Options, a apiadmission.Attributes) // is called before Admit; nil: nothing is

	// rules are the objects by which the plugin decides about namespaced objects. If one cannot be read, the write is
	// refused. nil: none.
	rules *rules

	// made builds a plugin of this package in place of upstream's; c may be nil.
	made func(o *Options, c *configuration) (apiadmission.Interface, error)
	// manifests reads such a plugin's configuration, and returns the directory that it names; nil: it has no configuration.
	manifests func(config io.Reader) (string, error)
}

var (
	creates = []apiadmission.Operation{apiadmission.Create}
	updates = []apiadmission.Operation{apiadmission.Update}
	both    = []apiadmission.Operation{apiadmission.Create, apiadmission.Update}
	changes = []apiadmission.Operation{apiadmission.Create, apiadmission.Update, apiadmission.Delete}
	all     = []apiadmission.Operation{apiadmission.Create, apiadmission.Update, apiadmission.Delete, apiadmission.Connect}

	pods     = []string{"pods"}
	podSpecs = []string{
		"pods", "namespaces", "replicationcontrollers", "podtemplates", "replicasets.apps", "deployments.apps",
		"statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
	}
	nodeWrites = []string{
		"pods", "nodes", "persistentvolumeclaims", "serviceaccounts", "leases.coordination.k8s.io",
		"csinodes.storage.k8s.io", "resourceslices.resource.k8s.io", "certificatesigningrequests.certificates.k8s.io",
		"podcertificaterequests.certificates.k8s.io",
	}
	classed  = []string{"persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses.storage.k8s.io"}
	requests = []string{"certificatesigningrequests.certificates.k8s.io"}

	prioritized = []string{
		"pods", "priorityclasses.scheduling.k8s.io", "podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io",
	}
)

// table has all plugins of kube-apiserver, in the order in which it asks them.
var table = []plugin{
	{name: admit.PluginName, off: true, operations: all, upstream: admit.Register},
	{name: autoprovision.PluginName, off: true, operations: creates, upstream: autoprovision.Register},
	{name: lifecycle.PluginName, made: unconfigured(func(o *Options) apiadmission.Interface { return NewLifecycle(o.Store) })},
	{name: exists.PluginName, off: true, operations: changes, upstream: exists.Register},
	{name: antiaffinity.PluginName, off: true, resources: pods, operations: both, upstream: antiaffinity.Register},
	{name: limitranger.PluginName, resources: []string{"pods", "persistentvolumeclaims"}, operations: both, upstream: limitranger.Register, needed: hasLimits, rules: &rules{limitRangePrefix, true}},
	{name: serviceaccount.PluginName, resources: pods, operations: both, upstream: serviceaccount.Register, before: awaitAccount},
	{name: noderestriction.PluginName, resources: nodeWrites, operations: changes, upstream: noderestriction.Register, concerns: isNode},
	{name: nodetaint.PluginName, resources: []string{"nodes"}, operations: creates, upstream: nodetaint.Register},
	{name: alwayspullimages.PluginName, off: true, resources: pods, operations: both, upstream: alwayspullimages.Register},
	{name: imagepolicy.PluginName, off: true, resources: pods, operations: both, upstream: imagepolicy.Register},
	{name: podsecurity.PluginName, resources: podSpecs, operations: both, upstream: podsecurity.Register},
	{name: podnodeselector.PluginName, off: true, resources: pods, operations: creates, upstream: podnodeselector.Register},
	{name: priority.PluginName, resources: prioritized, operations: changes, upstream: priority.Register, rules: &rules{prefix: object.Prefix("scheduling.k8s.io", "priorityclasses")}},
	{name: defaulttolerationseconds.PluginName, resources: pods, operations: both, upstream: defaulttolerationseconds.Register},
	{name: podtolerationrestriction.PluginName, off: true, resources: pods, operations: both, upstream: podtolerationrestriction.Register},
	{name: eventratelimit.PluginName, off: true, resources: []string{"events"}, operations: both, upstream: eventratelimit.Register},
	{name: extendedresourcetoleration.PluginName, off: true, resources: pods, operations: both, upstream: extendedresourcetoleration.Register},
	{name: setdefault.PluginName, resources: []string{"persistentvolumeclaims"}, operations: creates, upstream: setdefault.Register, rules: &rules{prefix: object.Prefix("storage.k8s.io", "storageclasses")}},
	{name: storageobjectinuseprotection.PluginName, resources: classed, operations: creates, upstream: storageobjectinuseprotection.Register},
	{name: podgroupprotection.PluginName, resources: []string{"podgroups.scheduling.k8s.io"}, operations: creates, upstream: podgroupprotection.Register},
	{name: gc.PluginName, off: true, operations: both, upstream: gc.Register},
	{name: resize.PluginName, resources: []string{"persistentvolumeclaims"}, operations: updates, upstream: resize.Register},
	{name: runtimeclass.PluginName, resources: pods, operations: creates, upstream: runtimeclass.Register},
	{name: approval.PluginName, resources: requests, operations: updates, upstream: approval.Register},
	{name: signing.PluginName, resources: requests, operations: updates, upstream: signing.Register},
	{name: ctbattest.PluginName, resources: []string{"clustertrustbundles.certificates.k8s.io"}, operations: both, upstream: ctbattest.Register},
	{name: subjectrestriction.PluginName, resources: requests, operations: creates, upstream: subjectrestriction.Register},
	{name: defaultingressclass.PluginName, resources: []string{"ingresses.networking.k8s.io"}, operations: creates, upstream: defaultingressclass.Register, rules: &rules{prefix: object.Prefix("networking.k8s.io", "ingressclasses")}},
	{name: denyserviceexternalips.PluginName, off: true, resources: []string{"services"}, operations: both, upstream: denyserviceexternalips.Register},
	{name: podtopologylabels.PluginName, resources: pods, operations: creates, upstream: podtopologylabels.Register},
	{name: nodedeclaredfeatures.PluginName, resources: []string{"pods", "resourceslices.resource.k8s.io"}, operations: both, upstream: nodedeclaredfeatures.Register},
	{name: podresize.PluginName, resources: pods, operations: updates, upstream: podresize.Register},
	{name: mutatingpolicy.PluginName, made: mutatingPolicies, manifests: mutatingManifests},
	{name: mutating.PluginName, made: mutatingWebhooksOf, manifests: webhookManifests},
	{name: validatingpolicy.PluginName, made: validatingPolicies, manifests: validatingManifests},
	{name: validating.PluginName, made: validatingWebhooksOf, manifests: webhookManifests},
	{name: resourcequota.PluginName, made: unconfigured(func(o *Options) apiadmission.Interface { return NewQuota(o) })},
	{name: deny.PluginName, off: true, operations: all, upstream: deny.Register},
}

// unconfigured is for plugins of this package without a configuration.
func unconfigured(made func(*Options) apiadmission.Interface) func(*Options, *configuration) (apiadmission.Interface, error) {
	return func(o *Options, _ *configuration) (apiadmission.Interface, error) { return made(o), nil }
}

// handles tells whether the plugin looks at a resource.
func (p *plugin) handles(resource schema.GroupResource) bool {
	return p.resources == nil || slices.Contains(p.resources, resource.String())
}

var nodes = nodeidentifier.NewDefaultNodeIdentifier()

// isNode tells whether a user is a kubelet.
func isNode(who user.Info) bool {
	_, is := nodes.NodeIdentity(who)
	return is
}

var limitRangePrefix = object.Prefix("", "limitranges")

// hasLimits tells whether a namespace has LimitRanges. Most namespaces have none.
func hasLimits(o *Options, namespace string) bool {
	return anyUnder(o.Store, limitRangePrefix, namespace+"/")
}

func (o *Options) policies(c *configuration) policies.Options {
	return policies.Options{
		Store: o.Store, Kinds: o.Kinds, Client: o.Client, Authorizer: o.Authorizer, Skip: unasked, Manifests: c.manifests(),
	}
}

func validatingPolicies(o *Options, c *configuration) (apiadmission.Interface, error) {
	return policies.NewValidating(o.policies(c))
}

// mutatingPolicies builds the plugin if upstream's feature is on.
func mutatingPolicies(o *Options, c *configuration) (apiadmission.Interface, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.MutatingAdmissionPolicy) {
		return Chain{}, nil // asks nobody
	}
	return policies.NewMutating(o.policies(c))
}
