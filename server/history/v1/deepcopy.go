package v1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (c *Change) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (v *Version) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	v.Data.DeepCopyInto(&out.Data)
	out.Touched = slices.Clone(v.Touched)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *ChangeList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Change, len(l.Items))
	}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Change)
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *VersionList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Version, len(l.Items))
	}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Version)
	}
	return &out
}
