package control

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// statuses writes the status of definitions. crd has no schemas, which a status has no say
// in, and the answer is asked for without them: they are the most of a definition, and
// applying a few hundred would spend its time on turning them from one form into another.
type statuses struct{ rest rest.Interface }

const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// update writes crd's status and keeps the resourceVersion that it gets in crd.
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

// overtaken tells whether a write failed because the definition has been deleted or
// changed meanwhile. That is fine: the change comes by as well.
func overtaken(err error) bool { return errors.IsNotFound(err) || errors.IsConflict(err) }
