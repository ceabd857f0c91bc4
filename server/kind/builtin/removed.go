package builtin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"

	"github.com/plinth-io/plinth/server/kind"
)

// MigrationGuide is the page that says what replaces each removed version.
const MigrationGuide = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"

// removal is a version of an API group that Kubernetes has removed, with its resources under
// today's names. The types, conversions and defaults are still in k8s.io/api and
// k8s.io/kubernetes, which need them to read old objects.
type removal struct {
	version   string
	resources string // separated by spaces: deployments.apps
	since     int    // first minor release without it, where the types do not say
}

// removals are the removed versions that can be served on request: all that the migration guide
// lists as removed from 1.16 on, and the alpha versions that were removed with them.
var removals = []removal{
	{version: "admissionregistration.k8s.io/v1alpha1", resources: "validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io"},
	{version: "admissionregistration.k8s.io/v1beta1", resources: "mutatingwebhookconfigurations.admissionregistration.k8s.io validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io"},
	{version: "apiextensions.k8s.io/v1beta1", resources: "customresourcedefinitions.apiextensions.k8s.io"},
	{version: "apiregistration.k8s.io/v1beta1", resources: "apiservices.apiregistration.k8s.io"},
	{version: "apps/v1beta1", resources: "controllerrevisions.apps deployments.apps statefulsets.apps"},
	{version: "apps/v1beta2", resources: "controllerrevisions.apps daemonsets.apps deployments.apps replicasets.apps statefulsets.apps"},
	{version: "authentication.k8s.io/v1alpha1", resources: "selfsubjectreviews.authentication.k8s.io"},
	{version: "authentication.k8s.io/v1beta1", resources: "selfsubjectreviews.authentication.k8s.io tokenreviews.authentication.k8s.io"},
	{version: "authorization.k8s.io/v1beta1", resources: "localsubjectaccessreviews.authorization.k8s.io selfsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io subjectaccessreviews.authorization.k8s.io"},
	{version: "batch/v1beta1", resources: "cronjobs.batch"},
	{version: "certificates.k8s.io/v1beta1", resources: "certificatesigningrequests.certificates.k8s.io"},
	{version: "coordination.k8s.io/v1beta1", resources: "leases.coordination.k8s.io"},
	{version: "discovery.k8s.io/v1beta1", resources: "endpointslices.discovery.k8s.io"},
	{version: "events.k8s.io/v1beta1", resources: "events.events.k8s.io"},
	{version: "extensions/v1beta1", resources: "daemonsets.apps deployments.apps ingresses.networking.k8s.io networkpolicies.networking.k8s.io replicasets.apps"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta1", resources: "flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta2", resources: "flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta3", resources: "flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	{version: "networking.k8s.io/v1beta1", resources: "ingressclasses.networking.k8s.io ingresses.networking.k8s.io ipaddresses.networking.k8s.io servicecidrs.networking.k8s.io"},
	{version: "node.k8s.io/v1beta1", resources: "runtimeclasses.node.k8s.io"},
	{version: "policy/v1beta1", resources: "poddisruptionbudgets.policy"},
	{version: "rbac.authorization.k8s.io/v1alpha1", since: 22, resources: "clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io"},
	{version: "rbac.authorization.k8s.io/v1beta1", resources: "clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io"},
	{version: "scheduling.k8s.io/v1beta1", resources: "priorityclasses.scheduling.k8s.io"},
	{version: "storage.k8s.io/v1alpha1", resources: "csistoragecapacities.storage.k8s.io volumeattachments.storage.k8s.io volumeattributesclasses.storage.k8s.io"},
	{version: "storage.k8s.io/v1beta1", resources: "csidrivers.storage.k8s.io csinodes.storage.k8s.io csistoragecapacities.storage.k8s.io storageclasses.storage.k8s.io volumeattachments.storage.k8s.io volumeattributesclasses.storage.k8s.io"},
}

const typesGone = "its types are gone from Kubernetes; plinth migrate-manifests brings objects to its successor"

const alphaOnly = "it was an alpha version behind a feature gate; plinth migrate-manifests brings objects to its successor"

// lost are the resources of removed versions that cannot be served, and why.
var lost = map[string]string{
	"extensions/v1beta1/podsecuritypolicies": "it has no successor, and its types are gone from Kubernetes",
	"policy/v1beta1/podsecuritypolicies":     "it has no successor, and its types are gone from Kubernetes",

	"certificates.k8s.io/v1alpha1":                     alphaOnly,
	"certificates.k8s.io/v1alpha1/clustertrustbundles": alphaOnly,

	"autoscaling/v2beta1":                          typesGone,
	"autoscaling/v2beta1/horizontalpodautoscalers": typesGone,
	"autoscaling/v2beta2":                          typesGone,
	"autoscaling/v2beta2/horizontalpodautoscalers": typesGone,
	"networking.k8s.io/v1alpha1":                   typesGone,
	"networking.k8s.io/v1alpha1/ipaddresses":       typesGone,
	"networking.k8s.io/v1alpha1/servicecidrs":      typesGone,
	"scheduling.k8s.io/v1alpha1":                   typesGone,
	"scheduling.k8s.io/v1alpha1/priorityclasses":   typesGone,
}

// Removed is one resource in a version that Kubernetes no longer serves.
type Removed struct {
	GVK      schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Now is the version that replaces it.
	Now schema.GroupVersionKind
	// Since is the first minor release of Kubernetes 1.x without it.
	Since int

	today schema.GroupResource
}

// Warning is the text of the Warning header in each answer.
func (r Removed) Warning() string {
	return fmt.Sprintf("%s %s was removed in v1.%d and is served on request only; use %s %s",
		r.GVK.GroupVersion(), r.GVK.Kind, r.Since, r.Now.GroupVersion(), r.Now.Kind)
}

// RemovedAPIs returns the removed versions with the given names. A name is a version
// (extensions/v1beta1), a resource in it (extensions/v1beta1/ingresses), or all. An empty name
// is an error, as in kube-apiserver's lists of admission plugins.
func RemovedAPIs(names []string) ([]Removed, error) {
	if len(names) == 0 {
		return nil, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []Removed
	known := map[string]bool{"all": true}
	for _, r := range removedByKind() {
		version := r.GVK.GroupVersion().String()
		resource := version + "/" + r.Resource.Resource
		known[version], known[resource] = true, true
		if wanted["all"] || wanted[version] || wanted[resource] {
			chosen = append(chosen, r)
		}
	}
	for _, name := range names {
		if name = strings.TrimSpace(name); !known[name] {
			return nil, unknownRemoved(name)
		}
	}
	return chosen, nil
}

func unknownRemoved(name string) error {
	if why := lost[name]; why != "" {
		return fmt.Errorf("removed API %q cannot be served: %s; see %s", name, why, MigrationGuide)
	}
	var versions []string
	for _, r := range removals {
		versions = append(versions, r.version)
	}
	return fmt.Errorf("removed API %q: write all, a VERSION, or VERSION/RESOURCE as in extensions/v1beta1/ingresses; the versions are %s",
		name, strings.Join(versions, ", "))
}

// allRemoved are the removed resources of the table.
func allRemoved() []Removed {
	kinds := map[schema.GroupResource]*kind.Kind{}
	for _, k := range Kinds(Options{}) {
		kinds[k.GroupResource()] = k
	}
	var all []Removed
	for _, row := range removals {
		gv, err := schema.ParseGroupVersion(row.version)
		if err != nil {
			panic(err) // of the table above: every test would fail
		}
		for _, name := range strings.Fields(row.resources) {
			today := schema.ParseGroupResource(name)
			all = append(all, row.of(gv, kinds[today]))
		}
	}
	return all
}

// of is the removal of one resource; k is its Kind today.
func (row removal) of(gv schema.GroupVersion, k *kind.Kind) Removed {
	r := Removed{
		GVK:      gv.WithKind(k.Kind),
		Resource: gv.WithResource(k.Resource),
		Now:      k.GVK(k.Versions[0].Name),
		Since:    row.since,
		today:    k.GroupResource(),
	}
	if r.Since == 0 {
		r.Since = removedIn(k.Codec.(*codec).scheme, r.GVK)
	}
	return r
}

// removedIn is the first minor release without a version, as its type says; 0 if it does not.
func removedIn(scheme *runtime.Scheme, gvk schema.GroupVersionKind) int {
	obj, err := scheme.New(gvk)
	if err != nil {
		panic(err) // of the table above: every test would fail
	}
	if r, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		_, minor := r.APILifecycleRemoved()
		return minor
	}
	return 0
}

// rollback is the subresource that Deployments had in some removed versions; nil for the
// others. It writes the annotation deprecated.deployment.rollback.to into the object, and
// the controller of Deployments does the rest.
func (s *stores) rollback(r Removed) *kind.Subresource {
	body := r.GVK.GroupVersion().WithKind("DeploymentRollback")
	if s.Store == nil || !legacyscheme.Scheme.Recognizes(body) {
		return nil
	}
	deployments, err := deploymentstore.NewStorage(s.getter)
	if err != nil {
		panic(fmt.Sprintf("build upstream's registry of Deployments: %v", err)) // every test of it would fail
	}
	return s.post("rollback", body, deployments.Rollback)
}
