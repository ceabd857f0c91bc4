package custom

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
)

// age is the column that every table of custom resources can fall back on.
var age = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}

// newColumns shows what the definition asks for after the name, or the age. A path that is
// no path leaves out the column and those after it, as upstream does.
func newColumns(v *apiextensionsv1.CustomResourceDefinitionVersion) rest.TableConvertor {
	columns := v.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{age}
	}
	table, _ := tableconvertor.New(columns) // it is usable also with an error
	return table
}

// scaleColumns are those of a Scale.
func scaleColumns(scale *apiextensionsv1.CustomResourceSubresourceScale) rest.TableConvertor {
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
