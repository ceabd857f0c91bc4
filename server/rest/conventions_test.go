package rest_test

import (
	"slices"
	"strings"
	"testing"

	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/rest"
)

// https://kubernetes.io/docs/reference/using-api/api-concepts/ and
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
func TestConventions(t *testing.T) {
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		h.playAll(t, slices.Concat(nameConventions, metadataConventions, identityConventions, versionConventions,
			specConventions, immutableConventions, scaleConventions))
	})
}

const (
	smallDeployment = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	subdomain       = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	label           = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	namePart        = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
	labelValue      = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
	elsewhere       = `the namespace of the provided object does not match the namespace sent on the request`
	wasModified     = `the object has been modified; please apply your changes to the latest version and try again`
)

// Names, and what else is validated of the metadata of all kinds.
var nameConventions = []namedScript{
	{"a name is needed", `
		POST configmaps {"metadata":{}}
		422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
		details: kind=ConfigMap group= name= causes.0.reason=FieldValueRequired causes.0.field=metadata.name
		POST configmaps {"metadata":{"name":""}}
		422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`},
	{"names of most kinds are DNS subdomains", `
		POST configmaps {"metadata":{"name":"A_b"}}
		422 Invalid: ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": ` + subdomain + `
		details: kind=ConfigMap name=A_b causes.0.reason=FieldValueInvalid causes.0.field=metadata.name causes.1=
		POST configmaps {"metadata":{"name":"a..b"}}
		422 Invalid: ConfigMap "a..b" is invalid: metadata.name: Invalid value: "a..b": ` + subdomain + `
		POST configmaps {"metadata":{"name":"` + strings.Repeat("a", 254) + `"}}
		422 Invalid: ConfigMap "` + strings.Repeat("a", 254) + `" is invalid: metadata.name: Invalid value: "` + strings.Repeat("a", 254) + `": must be no more than 253 characters
		POST configmaps {"metadata":{"name":"` + strings.Repeat("a", 253) + `"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"1.b"}}
		201 ConfigMap`},
	{"names of namespaces are DNS labels", `
		POST /api/v1/namespaces {"metadata":{"name":"a.b"}}
		422 Invalid: Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots
		POST /api/v1/namespaces {"metadata":{"name":"A"}}
		422 Invalid: Namespace "A" is invalid: metadata.name: Invalid value: "A": ` + label},
	{"names of roles are path segments", `
		POST /apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles {"metadata":{"name":"a/b"}}
		422 Invalid: Role.rbac.authorization.k8s.io "a/b" is invalid: metadata.name: Invalid value: "a/b": may not contain '/'
		POST /apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles {"metadata":{"name":"system:A"}}
		201 Role metadata.name=system:A`},
	{"a name is taken", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"a"},"data":{"other":"1"}}
		409 AlreadyExists: configmaps "a" already exists
		details: name=a kind=configmaps group= retryAfterSeconds= causes=
		POST deployments ` + smallDeployment + `
		201 Deployment
		POST deployments ` + smallDeployment + `
		409 AlreadyExists: deployments.apps "a" already exists
		details: name=a kind=deployments group=apps`},
	{"a name is made with generateName", `
		POST configmaps {"metadata":{"generateName":"gen-"}}
		201 ConfigMap metadata.generateName=gen- metadata.name=*
		POST configmaps {"metadata":{"generateName":"gen-"}}
		201 ConfigMap metadata.generateName=gen- metadata.name=*
		POST configmaps {"metadata":{"generateName":"No Name","name":"a"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.generateName: Invalid value: "No Name": ` + subdomain + `
		POST configmaps {"metadata":{"generateName":"gen-","name":"a"}}
		201 ConfigMap metadata.generateName=gen- metadata.name=a`},
	{"labels, annotations and finalizers have valid keys and values", `
		POST configmaps {"metadata":{"name":"a","labels":{"-":""}}}
		422 Invalid: ConfigMap "a" is invalid: metadata.labels: Invalid value: "-": ` + namePart + `
		POST configmaps {"metadata":{"name":"a","labels":{"a":"b/c"}}}
		422 Invalid: ConfigMap "a" is invalid: metadata.labels: Invalid value: "b/c": ` + labelValue + `
		POST configmaps {"metadata":{"name":"a","labels":{"a":"` + strings.Repeat("b", 64) + `"}}}
		422 Invalid: ConfigMap "a" is invalid: metadata.labels: Invalid value: "` + strings.Repeat("b", 64) + `": must be no more than 63 characters
		POST configmaps {"metadata":{"name":"a","annotations":{"/":""}}}
		422 Invalid: ConfigMap "a" is invalid: [metadata.annotations: Invalid value: "/": prefix part must be non-empty, metadata.annotations: Invalid value: "/": name part must be non-empty, metadata.annotations: Invalid value: "/": ` + namePart + `]
		POST configmaps {"metadata":{"name":"a","finalizers":["x"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified
		POST configmaps {"metadata":{"name":"a","finalizers":["orphan","foregroundDeletion"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Invalid value: []string{"orphan", "foregroundDeletion"}: finalizer orphan and foregroundDeletion cannot be both set`},
	{"annotations have 256 KiB together", `
		POST configmaps {"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("b", 256<<10) + `"}}}
		422 Invalid: ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes
		details: causes.0.reason=FieldValueTooLong causes.0.field=metadata.annotations`},
	{"owners are named in full", `
		POST configmaps {"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.ownerReferences: Invalid value: v1.OwnerReference{APIVersion:"v1", Kind:"Event", Name:"x", UID:"u", Controller:(*bool)(nil), BlockOwnerDeletion:(*bool)(nil)}: /v1, Kind=Event is disallowed from being an owner
		POST configmaps {"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"","uid":""}]}}
		422 Invalid: ConfigMap "a" is invalid: [metadata.ownerReferences.name: Invalid value: "": name must not be empty, metadata.ownerReferences.uid: Invalid value: "": uid must not be empty]
		details: causes.0.field=metadata.ownerReferences.name causes.1.field=metadata.ownerReferences.uid`},
}

// What the server sets.
var metadataConventions = []namedScript{
	{"uid, creationTimestamp and resourceVersion are the server's", `
		POST configmaps {"metadata":{"name":"a","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"}}
		201 ConfigMap uid:=metadata.uid at:=metadata.creationTimestamp metadata.resourceVersion=* metadata.selfLink= metadata.namespace=NS
		PUT configmaps/a {"metadata":{"name":"a","creationTimestamp":"2001-01-01T00:00:00Z"},"data":{"k":"v"}}
		200 ConfigMap metadata.uid=${uid} metadata.creationTimestamp=${at}`},
	{"a new object has no resourceVersion", `
		POST configmaps {"metadata":{"name":"a","resourceVersion":"5"}}
		500 : resourceVersion should not be set on objects to be created`},
	{"deletionTimestamp cannot be set by an update", `
		POST configmaps {"metadata":{"name":"a","deletionTimestamp":"2001-01-01T00:00:00Z"}}
		201 ConfigMap metadata.deletionTimestamp=
		PATCH configmaps/a {"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: 2001-01-01 00:00:00 +0000 UTC: field is immutable
		PUT configmaps/a {"metadata":{"name":"a","deletionGracePeriodSeconds":5}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable`},
}

// The body is about the object that the path names.
var identityConventions = []namedScript{
	{"kind and apiVersion may be left out", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap apiVersion=v1
		POST configmaps {"kind":"ConfigMap","metadata":{"name":"b"}}
		201 ConfigMap apiVersion=v1
		POST configmaps {"apiVersion":"v1","metadata":{"name":"c"}}
		201 ConfigMap apiVersion=v1`},
	{"another kind", `
		POST configmaps {"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}
		400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion
		POST configmaps {"kind":"Foo","apiVersion":"foo/v1","metadata":{"name":"a"}}
		400 BadRequest: Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "foo/v1" in scheme "pkg/runtime/scheme.go:110"`},
	{"another version", `
		POST configmaps {"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}
		400 BadRequest: ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:110"
		POST /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers {"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}
		400 BadRequest: the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)`},
	{"another namespace", `
		POST configmaps {"metadata":{"name":"a","namespace":"elsewhere"}}
		400 BadRequest: ` + elsewhere + `
		PUT configmaps/a {"metadata":{"name":"a","namespace":"elsewhere"}}
		400 BadRequest: ` + elsewhere + `
		POST /api/v1/nodes {"metadata":{"name":"a","namespace":"elsewhere"}}
		201 Node metadata.namespace=`},
	{"another name", `
		PUT configmaps/a {"metadata":{"name":"b"}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)
		PUT configmaps/a {"metadata":{}}
		400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		PATCH configmaps/a {"metadata":{"name":"b"}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)`},
	{"another uid", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		PUT configmaps/a {"metadata":{"name":"a","uid":"other"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ${uid}
		PATCH configmaps/a {"metadata":{"uid":"other"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable`},
	{"no object at all", `
		POST configmaps {"metadata":[]}
		400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
		POST configmaps []
		400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)
		POST configmaps {
		400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)`},
}

// Unconditional updates, and those with a version.
var versionConventions = []namedScript{
	{"an update without a resourceVersion is unconditional", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		PUT configmaps/a {"metadata":{"name":"a"},"data":{"k":"1"}}
		200 ConfigMap data.k=1
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"0"},"data":{"k":"2"}}
		200 ConfigMap data.k=2`},
	{"where it must have one", `
		PUT leases/a {"metadata":{"name":"a"}}
		201 Lease v:=metadata.resourceVersion
		PUT leases/a {"metadata":{"name":"a"}}
		422 Invalid: leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update
		details: kind=leases group=coordination.k8s.io name=a causes.0.field=metadata.resourceVersion
		PUT leases/a {"metadata":{"name":"a","resourceVersion":"${v}"},"spec":{"holderIdentity":"x"}}
		200 Lease`},
	{"an update with a stale resourceVersion is a conflict", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap v:=metadata.resourceVersion
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"${v}"},"data":{"k":"1"}}
		200 ConfigMap
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"${v}"},"data":{"k":"2"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": ` + wasModified + `
		details: name=a kind=configmaps group= causes=
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"x"},"data":{"k":"2"}}
		500 : strconv.ParseUint: parsing "x": invalid syntax`},
	{"an update of nothing", `
		PUT configmaps/a {"metadata":{"name":"a"}}
		404 NotFound: configmaps "a" not found
		details: name=a kind=configmaps
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"7"}}
		404 NotFound: configmaps "a" not found`},
	{"an update of nothing creates where that is allowed", `
		PUT endpoints/a {"metadata":{"name":"a"}}
		201 Endpoints uid:=metadata.uid
		PUT endpoints/a {"metadata":{"name":"a","labels":{"l":"1"}}}
		200 Endpoints metadata.uid=${uid}`},
	{"an update that changes nothing writes nothing", `
		POST configmaps {"metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap v:=metadata.resourceVersion
		PUT configmaps/a {"metadata":{"name":"a"},"data":{"k":"1"}}
		200 ConfigMap metadata.resourceVersion=${v}`},
}

// Spec, status and generation.
var specConventions = []namedScript{
	{"generation moves with the spec only", `
		POST deployments ` + smallDeployment + `
		201 Deployment metadata.generation=1
		PATCH deployments/a {"spec":{"replicas":2}}
		200 Deployment metadata.generation=2
		PATCH deployments/a {"spec":{"replicas":2}}
		200 Deployment metadata.generation=2
		PATCH deployments/a {"metadata":{"labels":{"a":"b"}}}
		200 Deployment metadata.generation=2
		PATCH deployments/a/status {"status":{"replicas":2}}
		200 Deployment metadata.generation=2 status.replicas=2
		PATCH deployments/a {"metadata":{"generation":9}}
		200 Deployment metadata.generation=2`},
	{"an update ignores the status", `
		POST deployments ` + strings.Replace(smallDeployment, `"spec"`, `"status":{"replicas":7},"spec"`, 1) + `
		201 Deployment status.replicas=
		PATCH deployments/a {"status":{"replicas":7}}
		200 Deployment status.replicas=`},
	{"/status ignores the spec and most of the metadata", `
		POST pods {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		PATCH pods/a/status {"metadata":{"finalizers":["x.io/a"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"u"}]},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}
		200 Pod spec.nodeName= status.phase=Running metadata.finalizers=["x.io/a"] metadata.ownerReferences=`},
	{"required lists that are empty are null", `
		POST /api/v1/namespaces/NS/limitranges {"metadata":{"name":"a"},"spec":{"limits":[]}}
		201 LimitRange spec.limits=
		POST /apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles {"metadata":{"name":"a"},"rules":[]}
		201 Role rules=`},
}

// Fields that do not change.
var immutableConventions = []namedScript{
	{"a Deployment's selector", `
		POST deployments ` + smallDeployment + `
		201 Deployment
		PATCH deployments/a {"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}}
		422 Invalid: Deployment.apps "a" is invalid: spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"c"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable
		details: kind=Deployment group=apps name=a causes.0.reason=FieldValueInvalid causes.0.field=spec.selector`},
	{"the data of an immutable ConfigMap", `
		POST configmaps {"metadata":{"name":"a"},"immutable":true,"data":{"k":"1"}}
		201 ConfigMap
		PATCH configmaps/a {"data":{"k":"2"}}
		422 Invalid: ConfigMap "a" is invalid: data: Forbidden: field is immutable when ` + "`immutable`" + ` is set
		details: causes.0.reason=FieldValueForbidden causes.0.field=data
		PATCH configmaps/a {"immutable":false}
		422 Invalid: ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when ` + "`immutable`" + ` is set
		PATCH configmaps/a {"metadata":{"labels":{"a":"b"}}}
		200 ConfigMap metadata.labels.a=b`},
	{"a Secret's type", `
		POST secrets {"metadata":{"name":"a"}}
		201 Secret type=Opaque
		PATCH secrets/a {"type":"x"}
		422 Invalid: Secret "a" is invalid: type: Invalid value: "x": field is immutable`},
	{"a RoleBinding's role", `
		POST /apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings {"metadata":{"name":"a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}}
		201 RoleBinding
		PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings/a {"roleRef":{"name":"y"}}
		422 Invalid: RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"Role", Name:"y"}: cannot change roleRef`},
}

// The scale of a Deployment.
var scaleConventions = []namedScript{
	{"scale has the object's identity and no more", `
		POST deployments ` + smallDeployment + `
		201 Deployment uid:=metadata.uid
		GET deployments/a/scale
		200 Scale apiVersion=autoscaling/v1 metadata.name=a metadata.uid=${uid} spec.replicas=1 status.selector=a=b
		PUT deployments/a/scale {"metadata":{"name":"a"},"spec":{"replicas":5}}
		200 Scale spec.replicas=5
		GET deployments/a
		200 Deployment spec.replicas=5 metadata.generation=2
		PUT deployments/a/scale {"metadata":{"name":"a"},"spec":{"replicas":-1}}
		422 Invalid: Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
		PUT deployments/a/scale {"metadata":{"name":"b"},"spec":{"replicas":5}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)
		PUT deployments/b/scale {"metadata":{"name":"b"},"spec":{"replicas":5}}
		404 NotFound: deployments.apps "b" not found`},
}

// sameName generates the same name again and again.
type sameName struct {
	apirest.RESTCreateStrategy
	asked *int
}

func (s sameName) GenerateName(base string) string { *s.asked++; return base + "same" }

// A generated name that is taken is generated again, eight times in all.
func TestGeneratedNameIsTaken(t *testing.T) {
	h := newHarness(t, rest.Options{})
	old, asked := h.kinds.Lookup("", "v1", "configmaps"), 0
	changed := *old
	changed.Create = sameName{old.Create, &asked}
	h.kinds.Replace([]*kind.Kind{old}, []*kind.Kind{&changed})
	h.do("POST", configMaps, `{"metadata":{"generateName":"a-"}}`).want(201)
	asked = 0
	a := h.do("POST", configMaps, `{"metadata":{"generateName":"a-"}}`).want(409)
	if asked != 8 {
		t.Errorf("%d names were tried", asked)
	}
	if got, want := a.get("message"), `configmaps "a-same" already exists, the server was not able to generate a unique name for the object`; got != want || a.get("reason") != "AlreadyExists" {
		t.Errorf("got %s, want %s", got, want)
	}
	if a.get("details", "retryAfterSeconds") != "1" || a.head.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %s, details %s", a.head.Get("Retry-After"), a.get("details"))
	}
}
