package definitions

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
)

// statuses writes the status of definitions without their schemas, in requests and in
// answers. Schemas are most of a definition and no part of its status: to decode and encode
// them would take most of the time in which a few hundred definitions are applied.
type statuses struct{ rest clientrest.Interface }

const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// update writes crd's status and sets crd's resourceVersion to the new one.
func (s statuses) update(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	crd.TypeMeta = metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: apiextensionsv1.SchemeGroupVersion.String()}
	body, err := json.Marshal(crd)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	answer, err := s.rest.Put().Resource("customresourcedefinitions").Name(crd.Name).SubResource("status").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", metadataOnly).Body(body).DoRaw(ctx)
	if err != nil {
		return err
	}
	var written metav1.PartialObjectMetadata
	if err := json.Unmarshal(answer, &written); err != nil {
		return fmt.Errorf("decode status: %w", err)
	}
	crd.ResourceVersion = written.ResourceVersion
	return nil
}
