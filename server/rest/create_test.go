package rest_test

import (
	"slices"
	"strings"
	"testing"

	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/rest"
)

const (
	subdomain  = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	label      = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	namePart   = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
	labelValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
)

// nameRows are names, and what else is validated in the metadata of all kinds.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
var nameRows = []namedScript{
	{"name or generateName is required", `
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
	{"a name that is taken is refused", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"a"},"data":{"other":"1"}}
		409 AlreadyExists: configmaps "a" already exists
		details: name=a kind=configmaps group= retryAfterSeconds= causes=
		POST deployments ` + aDeployment + `
		201 Deployment
		POST deployments ` + aDeployment + `
		409 AlreadyExists: deployments.apps "a" already exists
		details: name=a kind=deployments group=apps`},
	{"generateName is completed to a unique name", `
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
		422 Invalid: ConfigMap "a" is invalid: metadata.labels: Invalid value: "` + strings.Repeat("b", 64) + `": must be no more than 63 bytes
		POST configmaps {"metadata":{"name":"a","annotations":{"/":""}}}
		422 Invalid: ConfigMap "a" is invalid: [metadata.annotations: Invalid value: "/": prefix part must be non-empty, metadata.annotations: Invalid value: "/": name part must be non-empty, metadata.annotations: Invalid value: "/": ` + namePart + `]
		POST configmaps {"metadata":{"name":"a","finalizers":["x"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified
		POST configmaps {"metadata":{"name":"a","finalizers":["orphan","foregroundDeletion"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`},
	{"annotations have at most 256 KiB in total", `
		POST configmaps {"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("b", 256<<10) + `"}}}
		422 Invalid: ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes
		details: causes.0.reason=FieldValueTooLong causes.0.field=metadata.annotations`},
	{"ownerReferences need a name and a uid, and no Event is an owner", `
		POST configmaps {"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}: /v1, Kind=Event is disallowed from being an owner
		POST configmaps {"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"","uid":""}]}}
		422 Invalid: ConfigMap "a" is invalid: [metadata.ownerReferences[0].name: Required value: must not be empty, metadata.ownerReferences[0].uid: Required value: must not be empty]
		details: causes.0.field=metadata.ownerReferences[0].name causes.1.field=metadata.ownerReferences[0].uid`},
}

// systemFieldRows are the fields of the metadata that the server sets.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#metadata
var systemFieldRows = []namedScript{
	{"uid, creationTimestamp and resourceVersion are set by the server", `
		POST configmaps {"metadata":{"name":"a","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"}}
		201 ConfigMap uid:=metadata.uid at:=metadata.creationTimestamp metadata.resourceVersion=* metadata.selfLink= metadata.namespace=NS
		PUT configmaps/a {"metadata":{"name":"a","creationTimestamp":"2001-01-01T00:00:00Z"},"data":{"k":"v"}}
		200 ConfigMap metadata.uid=${uid} metadata.creationTimestamp=${at}`},
	{"resourceVersion must not be set on objects to be created", `
		POST configmaps {"metadata":{"name":"a","resourceVersion":"5"}}
		500 : resourceVersion should not be set on objects to be created`},
	{"deletionTimestamp cannot be set by an update", `
		POST configmaps {"metadata":{"name":"a","deletionTimestamp":"2001-01-01T00:00:00Z"}}
		201 ConfigMap metadata.deletionTimestamp=
		PATCH configmaps/a {"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable
		PUT configmaps/a {"metadata":{"name":"a","deletionGracePeriodSeconds":5}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable`},
}

// TestCreate has what https://kubernetes.io/docs/reference/using-api/api-concepts/ and
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
// say about the metadata of new objects.
func TestCreate(t *testing.T) { playEach(t, awayOnOthers, slices.Concat(nameRows, systemFieldRows)) }

// sameName generates the same name each time.
type sameName struct {
	apirest.RESTCreateStrategy
	asked *int
}

func (s sameName) GenerateName(base string) string { *s.asked++; return base + "same" }

// TestGeneratedNameIsTaken wants eight names to be tried before the answer is AlreadyExists.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4420-retry-generate-name
func TestGeneratedNameIsTaken(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
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
