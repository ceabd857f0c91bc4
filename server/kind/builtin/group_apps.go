package builtin

import (
	"bytes"
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	apiapps "k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"

	"github.com/plinth-io/plinth/server/kind"
)

// keepRevision is kind.Hooks.CompleteChanged. The data of a ControllerRevision is immutable and
// compared byte by byte. It is stored without the spaces that a client may have sent, so equal
// JSON is replaced by the stored bytes.
func keepRevision(_ context.Context, obj, old runtime.Object) error {
	data, was := &obj.(*apiapps.ControllerRevision).Data, old.(*apiapps.ControllerRevision).Data
	a, err1 := json.Marshal(json.RawMessage(data.Raw))
	b, err2 := json.Marshal(json.RawMessage(was.Raw))
	if err1 == nil && err2 == nil && bytes.Equal(a, b) {
		*data = was
	}
	return nil
}

func appsKinds() []*kind.Kind {
	scaleOf := func(resource string, update apirest.RESTUpdateStrategy, of func(runtime.Object) (scaled, error)) *kind.Subresource {
		return scale(apiapps.Resource(resource), update, of)
	}
	return group{scheme: legacyscheme.Scheme, name: "apps", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "controllerrevisions", Singular: "controllerrevision", Kind: "ControllerRevision",
			Namespaced: true,
			Create:     controllerrevision.Strategy, Update: controllerrevision.Strategy, Delete: controllerrevision.Strategy,
			Hooks: kind.Hooks{CompleteChanged: keepRevision},
		},
		&kind.Kind{
			Resource: "daemonsets", Singular: "daemonset", Kind: "DaemonSet",
			ShortNames: []string{"ds"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     daemonset.Strategy, Update: daemonset.Strategy, Delete: daemonset.Strategy,
			VersionedAnnotation: appsv1.DeprecatedTemplateGeneration,
			Subresources:        subresources(status(daemonset.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "deployments", Singular: "deployment", Kind: "Deployment",
			ShortNames: []string{"deploy"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     deployment.Strategy, Update: deployment.Strategy, Delete: deployment.Strategy,
			Subresources: subresources(
				status(deployment.StatusStrategy),
				scaleOf("deployments", deployment.Strategy, scaledDeployment)),
		},
		&kind.Kind{
			Resource: "replicasets", Singular: "replicaset", Kind: "ReplicaSet",
			ShortNames: []string{"rs"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     replicaset.Strategy, Update: replicaset.Strategy, Delete: replicaset.Strategy,
			Attrs:      replicaset.GetAttrs,
			Attributes: attributes{"status.replicas": absentIs("0", "status.replicas")},
			Subresources: subresources(
				status(replicaset.StatusStrategy),
				scaleOf("replicasets", replicaset.Strategy, scaledReplicaSet)),
		},
		&kind.Kind{
			Resource: "statefulsets", Singular: "statefulset", Kind: "StatefulSet",
			ShortNames: []string{"sts"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     statefulset.Strategy, Update: statefulset.Strategy, Delete: statefulset.Strategy,
			Subresources: subresources(
				status(statefulset.StatusStrategy),
				scaleOf("statefulsets", statefulset.Strategy, scaledStatefulSet)),
		},
	)
}
