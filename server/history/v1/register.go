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

// The names of types in OpenAPI documents, as upstream's types have them.
const models = "com.github.plinth-io.plinth.server.history.v1."

// OpenAPIModelName implements util.OpenAPIModelNamer.
func (Change) OpenAPIModelName() string { return models + "Change" }

// OpenAPIModelName implements util.OpenAPIModelNamer.
func (ChangeList) OpenAPIModelName() string { return models + "ChangeList" }

// OpenAPIModelName implements util.OpenAPIModelNamer.
func (Version) OpenAPIModelName() string { return models + "Version" }

// OpenAPIModelName implements util.OpenAPIModelNamer.
func (VersionList) OpenAPIModelName() string { return models + "VersionList" }

// OpenAPIModelName implements util.OpenAPIModelNamer.
func (ObjectReference) OpenAPIModelName() string { return models + "ObjectReference" }
