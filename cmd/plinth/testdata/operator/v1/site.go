// Package v1 has the Site that the operator works with and that is stored.
package v1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1"}
	AddToScheme  = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Site{}, &SiteList{}).AddToScheme
)

// Site is some pages served under some hosts.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

type SiteSpec struct {
	Hosts    []string          `json:"hosts,omitempty"`
	Replicas *int32            `json:"replicas,omitempty"`
	Image    Image             `json:"image,omitempty"`
	Pages    map[string]string `json:"pages,omitempty"` // by file name
}

type Image struct {
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
}

type SiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas"`
	Selector           string             `json:"selector,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// Hub marks the version that others are converted to and from.
func (*Site) Hub() {}

func (s *Site) DeepCopyInto(out *Site) {
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Hosts = slices.Clone(s.Spec.Hosts)
	out.Spec.Pages = maps.Clone(s.Spec.Pages)
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	if s.Spec.Replicas != nil {
		n := *s.Spec.Replicas
		out.Spec.Replicas = &n
	}
}

func (s *Site) DeepCopyObject() runtime.Object {
	out := new(Site)
	s.DeepCopyInto(out)
	return out
}

func (l *SiteList) DeepCopyObject() runtime.Object {
	out := &SiteList{TypeMeta: l.TypeMeta, Items: make([]Site, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
