package ui

import "testing"

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - {name: v1alpha1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {old: {type: string}}}}}
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour, description: %[1]q}]
    schema:
      openAPIV3Schema:
        type: object
        description: %[1]q
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.size < 9 || self.colour == 'red'", message: %[1]q}]
            properties:
              colour: {type: string, enum: [red, blue], default: red, description: %[1]q}
              size: {type: integer, format: int32, minimum: 1, maximum: 10}
              parts: {type: array, maxItems: 5, items: {type: object, required: [name], properties: {name: {type: string, pattern: "^[a-z]+$"}, deep: {type: object, properties: {deeper: {type: object, properties: {deepest: {type: string}}}}}}}}
              tags: {type: object, additionalProperties: {type: string}}
`

// TestDefinitions: the schema of a custom resource is shown as documentation, field by field.
func TestDefinitions(t *testing.T) {
	b := newWorkbench(t)
	b.make("customresourcedefinitions.v1.apiextensions.k8s.io", "", widgets, hostile)
	b.open("definitions").is(200).has("widgets.example.com", "Widget", "v1alpha1", "deprecated", "Namespaced", "wd", `href="/x/definitions/deployments.apps"`)
	page := b.open("definitions/widgets.example.com").is(200).hasNot("<script>alert")
	page.has(hostile, "one of red, blue", `default "red"`, "integer (int32)", "at least 1", "at most 10", "list of object", "at most 5 items", "matches ^[a-z]+$", "map of string", "self.size < 9 || self.colour == 'red'", ".spec.colour", "required")
	b.open("definitions/widgets.example.com?version=v1alpha1").is(200).has(">old<").hasNot("colour")
	b.open("definitions/widgets.example.com?version=v9").is(404).has("has no version")
	b.open("definitions/widgets.example.com?field=spec/parts/deep").is(200).has(">deepest<")
	b.open("definitions/widgets.example.com?field=spec/nothing").is(404).has("There is no field spec.nothing")
	b.open("definitions/nothings.example.com").is(404)
}

// TestDefinitionBuiltIn: kinds of Kubernetes have documentation too, a page for what is deep in it.
func TestDefinitionBuiltIn(t *testing.T) {
	b := newWorkbench(t)
	b.open("definitions/deployments.apps").is(200).has("minReadySeconds", "replicas", "list of ")
	b.open("definitions/deploy?field=spec/template/spec/containers").is(200).has("imagePullPolicy", "Image pull policy")
	// A schema may refer to itself.
	b.open("definitions/customresourcedefinitions.apiextensions.k8s.io?field=spec/versions/schema/openAPIV3Schema/properties").is(200)
}
