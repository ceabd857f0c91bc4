package rest_test

import "testing"

// TestIdentity wants the object in the body to be the one that the path names. The body may omit
// kind and apiVersion.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#resources
func TestIdentity(t *testing.T) { playEach(t, awayOnOthers, identityRows) }

const elsewhere = `the namespace of the provided object does not match the namespace sent on the request`

var identityRows = []namedScript{
	{"kind and apiVersion may be left out", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap apiVersion=v1
		POST configmaps {"kind":"ConfigMap","metadata":{"name":"b"}}
		201 ConfigMap apiVersion=v1
		POST configmaps {"apiVersion":"v1","metadata":{"name":"c"}}
		201 ConfigMap apiVersion=v1`},
	{"a body of another kind", `
		POST configmaps {"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}
		400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion
		POST configmaps {"kind":"Foo","apiVersion":"foo/v1","metadata":{"name":"a"}}
		400 BadRequest: Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "foo/v1" in scheme "pkg/runtime/scheme.go:111"`},
	{"a body of another version", `
		POST configmaps {"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}
		400 BadRequest: ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"
		POST /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers {"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}
		400 BadRequest: the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)`},
	{"a body in another namespace", `
		POST configmaps {"metadata":{"name":"a","namespace":"elsewhere"}}
		400 BadRequest: ` + elsewhere + `
		PUT configmaps/a {"metadata":{"name":"a","namespace":"elsewhere"}}
		400 BadRequest: ` + elsewhere + `
		POST /api/v1/nodes {"metadata":{"name":"a","namespace":"elsewhere"}}
		201 Node metadata.namespace=`},
	{"a body with another name", `
		PUT configmaps/a {"metadata":{"name":"b"}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)
		PUT configmaps/a {"metadata":{}}
		400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		PATCH configmaps/a {"metadata":{"name":"b"}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)`},
	{"a body with another uid", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		PUT configmaps/a {"metadata":{"name":"a","uid":"other"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ${uid}
		PATCH configmaps/a {"metadata":{"uid":"other"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable`},
	{"a body that is not an object", `
		POST configmaps {"metadata":[]}
		400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
		POST configmaps []
		400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)
		POST configmaps {
		400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)`},
}
