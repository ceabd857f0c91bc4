package builtin

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/object"
)

func (s *stores) coreKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "", versions: []string{"v1"}}.kinds(slices.Concat(
		s.coreCluster(),
		s.coreWorkloads(),
		s.coreNetwork(),
		s.coreConfiguration(),
		coreVolumes(),
		coreLimits(),
	)...)
}

// coreCluster are the resources that describe the cluster itself.
func (s *stores) coreCluster() []*kind.Kind {
	return []*kind.Kind{
		s.componentStatuses(),
		{
			Resource: "events", Singular: "event", Kind: "Event",
			ShortNames: []string{"ev"},
			Namespaced: true,
			Create:     event.Strategy, Update: event.Strategy, Delete: event.Strategy,
			Attrs:      event.GetAttrs,
			Attributes: eventAttributes,
			Uncached:   true,
		},
		{
			Resource: "namespaces", Singular: "namespace", Kind: "Namespace",
			ShortNames: []string{"ns"},
			// Deleting many namespaces at once is not offered upstream.
			Verbs:  []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			Create: namespace.Strategy, Update: namespace.Strategy, Delete: namespace.Strategy,
			Attrs:         namespace.GetAttrs,
			Attributes:    attributes{"status.phase": defaulted("status.phase"), "name": object.Name()},
			Hooks:         kind.Hooks{MarkTerminating: terminateNamespace, DeletionDone: namespaceFinished},
			OwnNamespace:  true,
			ReturnDeleted: true,
			Subresources: subresources(
				status(namespace.StatusStrategy),
				&kind.Subresource{Name: "finalize", Verbs: []string{"update"}, Update: namespace.FinalizeStrategy, NoTable: true}),
		},
		{
			Resource: "nodes", Singular: "node", Kind: "Node",
			UpstreamPath: "minions",
			ShortNames:   []string{"no"},
			Create:       node.Strategy, Update: node.Strategy, Delete: node.Strategy,
			Attrs:      node.GetAttrs,
			Attributes: attributes{"spec.unschedulable": absentIs("false", "spec.unschedulable")},
			Subresources: subresources(
				status(node.StatusStrategy),
				s.connect("proxy", "NodeProxyOptions", s.nodeProxy)),
		},
	}
}

func (s *stores) coreWorkloads() []*kind.Kind {
	return []*kind.Kind{
		{
			Resource: "pods", Singular: "pod", Kind: "Pod",
			ShortNames: []string{"po"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     pod.Strategy, Update: pod.Strategy, Delete: pod.Strategy,
			Attrs:         pod.GetAttrs,
			Attributes:    podAttributes,
			ReturnDeleted: true,
			Subresources: subresources(
				status(pod.StatusStrategy),
				untabled(part("ephemeralcontainers", pod.EphemeralContainersStrategy)),
				untabled(part("resize", pod.ResizeStrategy)),
				s.post("binding", corev1.SchemeGroupVersion.WithKind("Binding"), s.pods.Binding),
				s.post("eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), s.pods.Eviction),
				s.connect("attach", "PodAttachOptions", s.pods.Attach),
				s.connect("exec", "PodExecOptions", s.pods.Exec),
				s.connect("portforward", "PodPortForwardOptions", s.pods.PortForward),
				s.connect("proxy", "PodProxyOptions", s.podProxy),
				s.stream("log", s.pods.Log)),
		},
		s.withStore(&kind.Kind{ // older than the subresource of pods
			Resource: "bindings", Singular: "binding", Kind: "Binding",
			Namespaced: true,
			Verbs:      []string{"create"},
			Virtual:    s.pods.LegacyBinding,
		}),
		{
			Resource: "podtemplates", Singular: "podtemplate", Kind: "PodTemplate",
			Namespaced: true,
			Create:     podtemplate.Strategy, Update: podtemplate.Strategy, Delete: podtemplate.Strategy,
			ReturnDeleted: true,
		},
		{
			Resource: "replicationcontrollers", Singular: "replicationcontroller", Kind: "ReplicationController",
			UpstreamPath: "controllers",
			ShortNames:   []string{"rc"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     replicationcontroller.Strategy, Update: replicationcontroller.Strategy, Delete: replicationcontroller.Strategy,
			Attrs:      replicationcontroller.GetAttrs,
			Attributes: attributes{"status.replicas": absentIs("0", "status.replicas")},
			Subresources: subresources(
				status(replicationcontroller.StatusStrategy),
				scale(api.Resource("replicationcontrollers"), replicationcontroller.Strategy, scaledController)),
		},
	}
}

func (s *stores) coreNetwork() []*kind.Kind {
	return []*kind.Kind{
		{
			Resource: "endpoints", Singular: "endpoints", Kind: "Endpoints",
			UpstreamPath: "services/endpoints",
			ShortNames:   []string{"ep"},
			Namespaced:   true,
			Create:       endpoint.Strategy, Update: endpoint.Strategy, Delete: endpoint.Strategy,
		},
		{
			Resource: "services", Singular: "service", Kind: "Service",
			UpstreamPath: "services/specs",
			ShortNames:   []string{"svc"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     service.Strategy, Update: service.Strategy, Delete: service.Strategy,
			Codec:         pruning(withoutDefaults),
			Attrs:         service.GetAttrs,
			Attributes:    attributes{"spec.clusterIP": absentIs("", "spec.clusterIP"), "spec.type": defaulted("spec.type")},
			Hooks:         s.serviceHooks(),
			ReturnDeleted: true,
			Subresources: subresources(
				status(service.StatusStrategy),
				s.connect("proxy", "ServiceProxyOptions", s.serviceProxy)),
		},
	}
}

func (s *stores) coreConfiguration() []*kind.Kind {
	return []*kind.Kind{
		{
			Resource: "configmaps", Singular: "configmap", Kind: "ConfigMap",
			ShortNames: []string{"cm"},
			Namespaced: true,
			Create:     configmap.Strategy, Update: configmap.Strategy, Delete: configmap.Strategy,
			Attrs: configmap.GetAttrs,
		},
		{
			Resource: "secrets", Singular: "secret", Kind: "Secret",
			Namespaced: true,
			Create:     secret.Strategy, Update: secret.Strategy, Delete: secret.Strategy,
			Attrs:      secret.GetAttrs,
			Attributes: attributes{"type": defaulted("type")},
		},
		{
			Resource: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount",
			ShortNames: []string{"sa"},
			Namespaced: true,
			Create:     serviceaccount.Strategy, Update: serviceaccount.Strategy, Delete: serviceaccount.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(s.token(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"))),
		},
	}
}

func coreVolumes() []*kind.Kind {
	return []*kind.Kind{
		{
			Resource: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Kind: "PersistentVolumeClaim",
			ShortNames: []string{"pvc"},
			Namespaced: true,
			Create:     persistentvolumeclaim.Strategy, Update: persistentvolumeclaim.Strategy, Delete: persistentvolumeclaim.Strategy,
			Attrs:         persistentvolumeclaim.GetAttrs,
			Attributes:    attributes{"name": object.Name()},
			ReturnDeleted: true,
			Subresources:  subresources(status(persistentvolumeclaim.StatusStrategy)),
		},
		{
			Resource: "persistentvolumes", Singular: "persistentvolume", Kind: "PersistentVolume",
			ShortNames: []string{"pv"},
			Create:     persistentvolume.Strategy, Update: persistentvolume.Strategy, Delete: persistentvolume.Strategy,
			Attrs:         persistentvolume.GetAttrs,
			Attributes:    attributes{"name": object.Name()},
			ReturnDeleted: true,
			Subresources:  subresources(status(persistentvolume.StatusStrategy)),
		},
	}
}

// coreLimits are the resources that limit what a namespace may have.
func coreLimits() []*kind.Kind {
	return []*kind.Kind{
		{
			Resource: "limitranges", Singular: "limitrange", Kind: "LimitRange",
			ShortNames: []string{"limits"},
			Namespaced: true,
			Create:     limitrange.Strategy, Update: limitrange.Strategy, Delete: limitrange.Strategy,
			Table: nameAndCreated("", "limitranges"),
		},
		{
			Resource: "resourcequotas", Singular: "resourcequota", Kind: "ResourceQuota",
			ShortNames: []string{"quota"},
			Namespaced: true,
			Create:     resourcequota.Strategy, Update: resourcequota.Strategy, Delete: resourcequota.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(status(resourcequota.StatusStrategy)),
		},
	}
}

// withoutDefaults leaves out of a stored Service what upstream leaves out of its answers: a
// default of a field that the Service's present type does not have.
func withoutDefaults(obj runtime.Object) runtime.Object {
	s, ok := obj.(*api.Service)
	if !ok || s.Spec.Type != api.ServiceTypeExternalName || s.Spec.InternalTrafficPolicy == nil {
		return obj
	}
	pruned := *s
	pruned.Spec.InternalTrafficPolicy = nil
	return &pruned
}
