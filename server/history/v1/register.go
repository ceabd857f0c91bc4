package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme adds the types of the group to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Change{}, &ChangeList{}, &Version{}, &VersionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
