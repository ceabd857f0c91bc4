// Package v1beta1 has the Site as it once was: one host, an image in one string and its
// pages in a list.
package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	v1 "example.com/site-operator/v1"
)

var (
	GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1beta1"}
	AddToScheme  = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Site{}, &SiteList{}).AddToScheme
)

type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec      `json:"spec"`
	Status v1.SiteStatus `json:"status,omitempty"`
}

type SiteSpec struct {
	Host     string `json:"host"`
	Replicas *int32 `json:"replicas,omitempty"`
	Image    string `json:"image,omitempty"` // repository:tag
	Pages    []Page `json:"pages,omitempty"`
}

type Page struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

func (s *Site) DeepCopyInto(out *Site) {
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Pages = slices.Clone(s.Spec.Pages)
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
