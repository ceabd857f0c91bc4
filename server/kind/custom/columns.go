package custom

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirest "k8s.io/apiserver/pkg/registry/rest"
)

// age is the column of definitions that have no columns of their own.
var age = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}

// newColumns makes the name, then the definition's columns or the age. A path that cannot be
// parsed drops its column and those after it, as upstream does.
func newColumns(v *apiextensionsv1.CustomResourceDefinitionVersion) apirest.TableConvertor {
	columns := v.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{age}
	}
	table, _ := tableconvertor.New(columns) // the table is usable despite an error
	return table
}

// scaleColumns are the columns of a Scale.
func scaleColumns(scale *apiextensionsv1.CustomResourceSubresourceScale) apirest.TableConvertor {
	var columns []apiextensionsv1.CustomResourceColumnDefinition
	if scale.SpecReplicasPath != "" {
		columns = append(columns, apiextensionsv1.CustomResourceColumnDefinition{
			Name: "Desired", Type: "integer", Description: "Number of desired replicas", JSONPath: ".spec.replicas",
		})
	}
	if scale.StatusReplicasPath != "" {
		columns = append(columns, apiextensionsv1.CustomResourceColumnDefinition{
			Name: "Available", Type: "integer", Description: "Number of actual replicas", JSONPath: ".status.replicas",
		})
	}
	table, _ := tableconvertor.New(append(columns, age))
	return table
}
