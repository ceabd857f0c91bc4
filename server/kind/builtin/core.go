package builtin

import (
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
)

func coreKinds(o Options) []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "", versions: []string{"v1"}}.kinds(
		o.componentStatuses(),
		&kind.Kind{
			Resource: "configmaps", Singular: "configmap", Kind: "ConfigMap",
			ShortNames: []string{"cm"},
			Namespaced: true,
			Create:     configmap.Strategy, Update: configmap.Strategy, Delete: configmap.Strategy,
			Attrs: configmap.GetAttrs,
		},
		&kind.Kind{
			Resource: "endpoints", Singular: "endpoints", Kind: "Endpoints",
			UpstreamPrefix: "/registry/services/endpoints/",
			ShortNames:     []string{"ep"},
			Namespaced:     true,
			Create:         endpoint.Strategy, Update: endpoint.Strategy, Delete: endpoint.Strategy,
		},
		&kind.Kind{
			Resource: "events", Singular: "event", Kind: "Event",
			ShortNames: []string{"ev"},
			Namespaced: true,
			Create:     event.Strategy, Update: event.Strategy, Delete: event.Strategy,
			Attrs: event.GetAttrs,
		},
		&kind.Kind{
			Resource: "limitranges", Singular: "limitrange", Kind: "LimitRange",
			ShortNames: []string{"limits"},
			Namespaced: true,
			Create:     limitrange.Strategy, Update: limitrange.Strategy, Delete: limitrange.Strategy,
			Table: nameAndCreated("", "limitranges"),
		},
		&kind.Kind{
			Resource: "namespaces", Singular: "namespace", Kind: "Namespace",
			ShortNames: []string{"ns"},
			// Deleting many namespaces at once is not offered upstream.
			Verbs:  []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			Create: namespace.Strategy, Update: namespace.Strategy, Delete: namespace.Strategy,
			Attrs:         namespace.GetAttrs,
			BeginDelete:   terminateNamespace,
			Finishing:     namespaceFinished,
			ReturnDeleted: true,
			Subresources: subresources(
				status(namespace.StatusStrategy),
				&kind.Subresource{Name: "finalize", Verbs: []string{"update"}, Update: namespace.FinalizeStrategy, NoTable: true}),
		},
		&kind.Kind{
			Resource: "nodes", Singular: "node", Kind: "Node",
			UpstreamPrefix: "/registry/minions/",
			ShortNames:     []string{"no"},
			Create:         node.Strategy, Update: node.Strategy, Delete: node.Strategy,
			Attrs:        node.GetAttrs,
			Subresources: subresources(status(node.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Kind: "PersistentVolumeClaim",
			ShortNames: []string{"pvc"},
			Namespaced: true,
			Create:     persistentvolumeclaim.Strategy, Update: persistentvolumeclaim.Strategy, Delete: persistentvolumeclaim.Strategy,
			Attrs:         persistentvolumeclaim.GetAttrs,
			ReturnDeleted: true,
			Subresources:  subresources(status(persistentvolumeclaim.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "persistentvolumes", Singular: "persistentvolume", Kind: "PersistentVolume",
			ShortNames: []string{"pv"},
			Create:     persistentvolume.Strategy, Update: persistentvolume.Strategy, Delete: persistentvolume.Strategy,
			Attrs:         persistentvolume.GetAttrs,
			ReturnDeleted: true,
			Subresources:  subresources(status(persistentvolume.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "pods", Singular: "pod", Kind: "Pod",
			ShortNames: []string{"po"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     pod.Strategy, Update: pod.Strategy, Delete: pod.Strategy,
			Attrs:         pod.GetAttrs,
			ReturnDeleted: true,
			Subresources: subresources(
				status(pod.StatusStrategy),
				untabled(part("ephemeralcontainers", pod.EphemeralContainersStrategy)),
				untabled(part("resize", pod.ResizeStrategy))),
		},
		&kind.Kind{
			Resource: "podtemplates", Singular: "podtemplate", Kind: "PodTemplate",
			Namespaced: true,
			Create:     podtemplate.Strategy, Update: podtemplate.Strategy, Delete: podtemplate.Strategy,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "replicationcontrollers", Singular: "replicationcontroller", Kind: "ReplicationController",
			UpstreamPrefix: "/registry/controllers/",
			ShortNames:     []string{"rc"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     replicationcontroller.Strategy, Update: replicationcontroller.Strategy, Delete: replicationcontroller.Strategy,
			Attrs: replicationcontroller.GetAttrs,
			Subresources: subresources(
				status(replicationcontroller.StatusStrategy),
				scale(api.Resource("replicationcontrollers"), replicationcontroller.Strategy, scaledController)),
		},
		&kind.Kind{
			Resource: "resourcequotas", Singular: "resourcequota", Kind: "ResourceQuota",
			ShortNames: []string{"quota"},
			Namespaced: true,
			Create:     resourcequota.Strategy, Update: resourcequota.Strategy, Delete: resourcequota.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(status(resourcequota.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "secrets", Singular: "secret", Kind: "Secret",
			Namespaced: true,
			Create:     secret.Strategy, Update: secret.Strategy, Delete: secret.Strategy,
			Attrs: secret.GetAttrs,
		},
		&kind.Kind{
			Resource: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount",
			ShortNames: []string{"sa"},
			Namespaced: true,
			Create:     serviceaccount.Strategy, Update: serviceaccount.Strategy, Delete: serviceaccount.Strategy,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "services", Singular: "service", Kind: "Service",
			UpstreamPrefix: "/registry/services/specs/",
			ShortNames:     []string{"svc"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     service.Strategy, Update: service.Strategy, Delete: service.Strategy,
			Attrs:         service.GetAttrs,
			ReturnDeleted: true,
			Subresources:  subresources(status(service.StatusStrategy)),
		},
	)
}
