// Package crdtest makes CustomResourceDefinitions of the size and shape that operators ship,
// for tests and benchmarks: with a pod template, several versions and rules in CEL. The same
// call always returns the same definition. The package does not know the server.
package crdtest

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Workloads is a definition of about 550 KiB as YAML, more than kubectl apply can keep in an
// annotation. v1 has a pod template with descriptions, v1beta1 the same fields without the
// template, and v1alpha1 allows any field.
func Workloads(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "workloads." + group, Annotations: map[string]string{"controller-gen.kubebuilder.io/version": "v0.18.0"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "workloads", Singular: "workload", Kind: "Workload", ListKind: "WorkloadList",
				ShortNames: []string{"wl"}, Categories: []string{"all"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", true, workload(reflector{descriptions: 800}, true)),
				version("v1beta1", false, workload(reflector{}, false)),
				deprecated(version("v1alpha1", false, props{Type: "object", XPreserveUnknownFields: ptr.To(true)})),
			},
		},
	}
}

func version(name string, storage bool, schema props) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
		Subresources: &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: ptr.To(".status.selector"),
			},
		},
		AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Desired", Type: "integer", JSONPath: ".spec.replicas"},
			{Name: "Images", Type: "string", JSONPath: ".spec.template.spec.containers[*].image", Priority: 1},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		},
	}
}

func deprecated(v apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceDefinitionVersion {
	v.Deprecated = true
	return v
}

// status are the fields that controllers write.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type"`
}

func workload(r reflector, rules bool) props {
	text := func(most int64) props { return props{Type: "string", MaxLength: &most} }
	template := r.schema(reflect.TypeFor[corev1.PodTemplateSpec]())
	template.Properties["metadata"] = props{Type: "object", Properties: map[string]props{
		"labels":      r.schema(reflect.TypeFor[map[string]string]()),
		"annotations": r.schema(reflect.TypeFor[map[string]string]()),
	}}
	pod := template.Properties["spec"]
	containers := pod.Properties["containers"]
	containers.MinItems, containers.MaxItems = ptr.To[int64](1), ptr.To[int64](64)
	pod.Properties["containers"] = containers
	template.Properties["spec"] = pod
	spec := props{Type: "object", Required: []string{"template"}, Properties: map[string]props{
		"replicas": {Type: "integer", Format: "int32", Minimum: ptr.To(0.0), Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
		"class":    text(63), "schedule": text(120), "minReplicas": {Type: "integer"}, "maxReplicas": {Type: "integer"},
		"policy":   {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Always"`)}, {Raw: []byte(`"Never"`)}}, Default: &apiextensionsv1.JSON{Raw: []byte(`"Always"`)}},
		"selector": r.schema(reflect.TypeFor[metav1.LabelSelector]()),
		"template": template,
		"strategy": {Type: "object", Properties: map[string]props{"maxSurge": known[reflect.TypeFor[intstr.IntOrString]()], "paused": {Type: "boolean"}}},
		"claims":   r.schema(reflect.TypeFor[[]corev1.PersistentVolumeClaimSpec]()),
	}}
	if rules {
		addRules(&spec)
	} else {
		spec.Properties["template"] = props{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	}
	return props{Type: "object", Properties: map[string]props{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec": spec, "status": r.schema(reflect.TypeFor[status]()),
	}}
}

func addRules(spec *props) {
	immutable := spec.Properties["class"]
	immutable.XValidations = apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: "class is immutable"}}
	spec.Properties["class"] = immutable
	reason := apiextensionsv1.FieldValueForbidden
	spec.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas", Message: "minReplicas is more than maxReplicas", FieldPath: ".minReplicas"},
		{Rule: "!has(self.maxReplicas) || self.replicas <= self.maxReplicas", MessageExpression: "self.maxReplicas == 0 ? 'switched off' : 'more replicas than maxReplicas'", Reason: &reason},
		{Rule: "self.template.spec.containers.all(c, c.name != 'reserved')", Message: "the name is reserved"},
		{Rule: "!has(self.schedule) || self.schedule.split(' ').size() == 5", Message: "a schedule has five fields"},
		{Rule: "has(oldSelf.schedule) == has(self.schedule)", Message: "a schedule cannot be added or removed"},
	}
}
