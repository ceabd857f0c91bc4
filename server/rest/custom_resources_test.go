package rest_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// w begins a Widget's JSON, b one of v1beta1.
const (
	w = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":`
	b = `{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"name":`
)

// beta and alpha are the paths of versions that are not stored.
const (
	beta  = `/apis/example.com/v1beta1/namespaces/NS/widgets`
	alpha = `/apis/example.com/v1alpha1/namespaces/NS/widgets`
)

const unchecked = `<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`

// customRows are what
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
// and its neighbours say, on the definition in testdata/widgets.json.
var customRows = []namedScript{
	{"an object has a generation, defaults, and no status at its creation", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"},"status":{"phase":"ok"}}
		201 Widget apiVersion=example.com/v1 metadata.generation=1 metadata.uid=* spec.min=1 spec.max=10 status=
		GET widgets/a
		200 Widget spec.max=10
		GET widgets
		200 WidgetList apiVersion=example.com/v1 items.0.kind=Widget items.0.apiVersion=example.com/v1 items.0.spec.min=1
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		409 AlreadyExists: widgets.example.com "a" already exists
		DELETE widgets/a
		200 Status details.kind=widgets
		GET widgets/a
		404 NotFound: widgets.example.com "a" not found
	`},
	{"unknown fields are pruned", `
		POST widgets?fieldValidation=Ignore ` + w + `"a","bogus":1},"spec":{"color":"red","bogus":1},"bogus":1}
		201 Widget bogus= spec.bogus= metadata.bogus=
		warning:
	`},
	{"unknown fields are pruned with a warning", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","bogus":1}}
		201 Widget spec.bogus=
		warning: unknown field "spec.bogus"
		PATCH widgets/a {"spec":{"text":"a","bogus":1}}
		200 Widget spec.text=a spec.bogus=
		warning: unknown field "spec.bogus"
	`},
	{"unknown and duplicate fields are refused by strict validation", `
		POST widgets?fieldValidation=Strict ` + w + `"a","bogus":1},"spec":{"color":"green","color":"red","bogus":1,"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","bogus":1}}},"bogus":1}
		400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.color", unknown field "metadata.bogus", unknown field "bogus", unknown field "spec.bogus", unknown field "spec.template.metadata.bogus"
		POST widgets?fieldValidation=Strict Content-Type:application/yaml apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {color: green, bogus: 1}
		400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"
	`},
	{"x-kubernetes-preserve-unknown-fields keeps what it is on", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","free":{"a":{"b":[1,2.5,null]}}}}
		201 Widget spec.free.a.b=[1,2.5,null]
	`},
	{"x-kubernetes-embedded-resource has kind, apiVersion and metadata", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","bogus":1},"more":1}}}
		201 Widget spec.template.metadata={"name":"p"} spec.template.more=1
		POST widgets ` + w + `"b"},"spec":{"color":"red","template":{"kind":"Pod"}}}
		422 Invalid: Widget.example.com "b" is invalid: [spec.template.apiVersion: Required value, ` + unchecked + `
	`},
	{"x-kubernetes-int-or-string takes both and nothing else", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","port":"http"}}
		201 Widget spec.port=http
		PATCH widgets/a {"spec":{"port":80}}
		200 Widget spec.port=80
		PATCH widgets/a {"spec":{"port":true}}
		422 Invalid: Widget.example.com "a" is invalid: [spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean", ` + unchecked + `
	`},
	{"nullable keeps null; other nulls are pruned before defaulting", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","note":null,"min":null,"frozen":null}}
		201 Widget spec={"color":"red","max":10,"min":1,"note":null}
	`},
	{"numbers stay what they are", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","num":3.0,"free":{"big":12345678901234567,"e":1e3}}}
		201 Widget spec.num=3 spec.free.big=12345678901234567 spec.free.e=1000
	`},
	{"values are validated by the schema", `
		POST widgets ` + w + `"a"},"spec":{"color":"pink"}}
		422 Invalid: Widget.example.com "a" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", ` + unchecked + `
		POST widgets ` + w + `"a"},"spec":{"color":"red","max":101}}
		422 Invalid: Widget.example.com "a" is invalid: spec.max: Invalid value: 101: spec.max in body should be less than or equal to 100
		POST widgets ` + w + `"a"},"spec":{"color":"red","dict":{"k":"v"}}}
		422 Invalid: Widget.example.com "a" is invalid: [spec.dict.k: Invalid value: "string": spec.dict.k in body must be of type integer: "string", ` + unchecked + `
		POST widgets ` + w + `"a"}}
		422 Invalid: Widget.example.com "a" is invalid: [spec: Required value, ` + unchecked + `
	`},
	{"lists of type set and map have no duplicates", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","set":["a","a"]}}
		422 Invalid: Widget.example.com "a" is invalid: spec.set[1]: Duplicate value: "a"
		POST widgets ` + w + `"a"},"spec":{"color":"red","map":[{"name":"x"},{"name":"x"}]}}
		422 Invalid: Widget.example.com "a" is invalid: spec.map[1]: Duplicate value: {"name":"x"}
		POST widgets ` + w + `"a"},"spec":{"color":"red","map":[{"name":"x"},{"name":"y"}]}}
		201 Widget spec.map.0.value=dv spec.map.1.value=dv
	`},
	{"a CEL rule has a message expression, a reason and a field path", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","min":11}}
		422 Invalid: Widget.example.com "a" is invalid: spec.min: Forbidden: eleven is too much
		details: causes.0.reason=FieldValueForbidden causes.0.field=spec.min
	`},
	{"a transition rule compares with oldSelf", `
		POST widgets ` + w + `"a"},"spec":{"color":"red","frozen":"x"}}
		201 Widget
		PATCH widgets/a {"spec":{"frozen":"y"}}
		422 Invalid: Widget.example.com "a" is invalid: spec: Invalid value: frozen stays
		PATCH widgets/a {"spec":{"color":"blue"}}
		200 Widget spec.color=blue
	`},
	{"validation ratcheting: an unchanged invalid value may stay", `
		POST ` + alpha + ` {"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"pink"}}
		201 Widget
		PATCH widgets/a {"spec":{"text":"a"}}
		200 Widget spec.color=pink spec.text=a
		PATCH widgets/a {"spec":{"color":"violet"}}
		422 Invalid: Widget.example.com "a" is invalid: [spec.color: Unsupported value: "violet": supported values: "red", "green", "blue", ` + unchecked + `
	`},
	{"a body must have the resource's kind and version", `
		POST widgets {"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"name":"a"}}
		400 BadRequest: the API version in the data (example.com/v1beta1) does not match the expected API version (example.com/v1)
		POST widgets {"kind":"Widget","metadata":{"name":"a"}}
		400 BadRequest: the API version in the data () does not match the expected API version (example.com/v1)
		POST widgets {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":5}}
		400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string
		POST widgets {"apiVersion":"example.com/v1","kind":"Widget","spec":{"color":"red","min":1,"max":2}}
		422 Invalid: Widget.example.com "" is invalid: [metadata.name: Required value: name or generateName is required, ` + unchecked + `
	`},
	{"finalizers without a domain are warned of", `
		POST widgets ` + w + `"a","finalizers":["bare"]},"spec":{"color":"red"}}
		201 Widget
		warning: metadata.finalizers: "bare": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers
		DELETE widgets/a
		200 Widget metadata.deletionTimestamp=* metadata.generation=2
		PATCH widgets/a {"metadata":{"finalizers":null}}
		200 Widget
		GET widgets/a
		404 NotFound: widgets.example.com "a" not found
	`},
	{"an update must have a resourceVersion", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget rv:=metadata.resourceVersion
		PUT widgets/a ` + w + `"a"},"spec":{"color":"blue"}}
		422 Invalid: widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update
		PUT widgets/a ` + w + `"a","resourceVersion":"${rv}"},"spec":{"color":"blue"},"status":{"phase":"ok"}}
		200 Widget spec.color=blue status= metadata.generation=2
		PUT widgets/a ` + w + `"a","resourceVersion":"${rv}"},"spec":{"color":"blue"}}
		409 Conflict: Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again
	`},
	{"JSON Patch and merge patch are supported, strategic merge patch is not", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget
		PATCH widgets/a Content-Type:application/json-patch+json [{"op":"add","path":"/spec/text","value":"a3"}]
		200 Widget spec.text=a3 metadata.generation=2
		PATCH widgets/a Content-Type:application/json-patch+json [{"op":"remove","path":"/spec/color"}]
		422 Invalid: Widget.example.com "a" is invalid: [spec.color: Required value, ` + unchecked + `
		PATCH widgets/a Content-Type:application/json-patch+json [{"op":"replace","path":"/kind","value":"X"}]
		422 Invalid: X.example.com "a" is invalid: kind: Invalid value: "X": must be Widget
		PATCH widgets/a Content-Type:application/strategic-merge-patch+json {}
		415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
	`},
	{"/status changes the status only", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget
		PATCH widgets/a/status {"spec":{"text":"a5"},"status":{"phase":"ok"},"metadata":{"labels":{"x":"y"}}}
		200 Widget status.phase=ok spec.text= metadata.labels= metadata.generation=1
		PATCH widgets/a {"status":{"phase":"bad"}}
		200 Widget status.phase=ok
		PATCH widgets/a/status {"status":{"phase":"zz"}}
		422 Invalid: Widget.example.com "a" is invalid: [status.phase: Unsupported value: "zz": supported values: "ok", "bad", ` + unchecked + `
		GET widgets/a/status
		200 Widget status.phase=ok
		GET ` + beta + `/a/status
		404 NotFound: widgets.example.com "a" not found
		DELETE widgets/a/status
		405 MethodNotAllowed: delete is not supported on resources of kind "widgets.example.com"
	`},
	{"/scale reads and writes the replicas", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget
		GET widgets/a/scale
		500 InternalError: Internal error occurred: the spec replicas field ".spec.replicas" does not exist
		PATCH widgets/a/scale {"metadata":{"labels":{"a":"b"}}}
		400 BadRequest: the spec replicas field ".spec.replicas" cannot be empty
		PATCH widgets/a/scale {"spec":{"replicas":4}}
		200 Scale spec.replicas=4
		PATCH widgets/a/status {"status":{"replicas":3,"selector":"a=b"}}
		200 Widget
		GET widgets/a/scale
		200 Scale apiVersion=autoscaling/v1 metadata.name=a spec.replicas=4 status.replicas=3 status.selector=a=b
		PUT widgets/a/scale {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"NS"},"spec":{"replicas":5}}
		200 Scale spec.replicas=5
		GET widgets/a
		200 Widget spec.replicas=5 metadata.generation=3
		PATCH widgets/a/scale {"spec":{"replicas":-4}}
		422 Invalid: Widget.example.com "a" is invalid: [spec.replicas: Invalid value: -4: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -4: should be a non-negative integer]
	`},
	{"apply merges lists by x-kubernetes-list-type and x-kubernetes-list-map-keys", `
		PATCH widgets/a?fieldManager=one Content-Type:application/apply-patch+yaml ` + w + `"a"},"spec":{"color":"red","replicas":3,"set":["a"],"map":[{"name":"x","value":"1"}]}}
		201 Widget spec.replicas=3
		PATCH widgets/a?fieldManager=two Content-Type:application/apply-patch+yaml ` + w + `"a"},"spec":{"color":"red","set":["b"],"map":[{"name":"z","value":"1"}]}}
		200 Widget spec.set=["a","b"] spec.map.0.name=x spec.map.1.name=z
		PATCH widgets/a?fieldManager=two Content-Type:application/apply-patch+yaml ` + w + `"a"},"spec":{"color":"green"}}
		409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.color
		PATCH widgets/a?fieldManager=one Content-Type:application/apply-patch+yaml ` + w + `"a"},"spec":{"color":"red"}}
		200 Widget spec.set=["b"] spec.map.0.name=z spec.replicas=
		PATCH widgets/a?fieldManager=one Content-Type:application/apply-patch+yaml ` + w + `"a"},"spec":{"color":"red","bogus":1}}
		500 : failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.bogus: field not declared in schema
	`},
	{"other versions are pruned by their own schema, what is stored by the storage version's", `
		POST ` + beta + ` ` + b + `"a"},"spec":{"color":"red","old":"x"}}
		201 Widget apiVersion=example.com/v1beta1 spec.color=red spec.old=
		warning: example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget
		GET widgets/a
		200 Widget apiVersion=example.com/v1 spec.color=red spec.min=1 spec.old=
		warning:
		PATCH widgets/a {"spec":{"text":"a"}}
		200 Widget
		GET ` + beta + `/a
		200 Widget apiVersion=example.com/v1beta1 spec={"color":"red"}
		GET ` + beta + `
		200 WidgetList apiVersion=example.com/v1beta1 items.0.apiVersion=example.com/v1beta1 items.0.spec={"color":"red"}
		GET ` + alpha + `/a
		200 Widget apiVersion=example.com/v1alpha1 spec.text=a
		warning: use something else
	`},
	{"fields are selected by selectableFields of the version", `
		POST widgets ` + w + `"a","labels":{"l":"1"}},"spec":{"color":"red"}}
		201 Widget
		POST widgets ` + w + `"b"},"spec":{"color":"blue"}}
		201 Widget
		GET widgets?fieldSelector=spec.color%3Dblue
		200 WidgetList items.0.metadata.name=b items.1=
		GET widgets?labelSelector=l%3D1
		200 WidgetList items.0.metadata.name=a items.1=
		GET widgets?fieldSelector=spec.nope%3Dblue
		400 BadRequest: field label not supported: spec.nope
		GET ` + beta + `?fieldSelector=spec.color%3Dblue
		400 BadRequest: field label not supported: spec.color
	`},
	{"tables have the additionalPrinterColumns", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget
		GET widgets Accept:application/json;as=Table;v=v1;g=meta.k8s.io
		200 Table columnDefinitions.1.name=Color columnDefinitions.2.priority=1 columnDefinitions.3.name=Age rows.0.cells.0=a rows.0.cells.1=red rows.0.cells.2=
		GET ` + beta + `/a Accept:application/json;as=Table;v=v1;g=meta.k8s.io
		200 Table columnDefinitions.1.name=Age columnDefinitions.2= rows.0.cells.0=a
	`},
	{"paths that a custom resource has and has not", `
		GET /apis/example.com/v1/namespaces/NS/widgets/a/foo
		404 NotFound: widgets.example.com "a" not found
		PUT widgets ` + w + `"a"}}
		400 BadRequest: name must be provided
		POST widgets/a {}
		400 BadRequest: the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})
		GET widgets Accept:text/plain
		406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf
	`},
	{"a dry run stores nothing and shows everything", `
		POST widgets?dryRun=All ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget spec.max=10 metadata.uid=*
		GET widgets/a
		404 NotFound: widgets.example.com "a" not found
	`},
	{"a write that changes nothing writes nothing", `
		POST widgets ` + w + `"a"},"spec":{"color":"red"}}
		201 Widget rv:=metadata.resourceVersion
		PATCH widgets/a {"spec":{"color":"red"}}
		200 Widget metadata.resourceVersion=${rv}
	`},
}

func TestCustomResources(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.serveDefinitions()
		h.define(widgets(t, "example.com"))
		h.playAll(t, customRows)
	})
}
