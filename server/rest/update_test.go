package rest_test

import (
	"slices"
	"strings"
	"testing"
)

// TestUpdate has what
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
// says about updates.
func TestUpdate(t *testing.T) {
	playEach(t, awayOnPostgres, slices.Concat(concurrencyRows, statusRows, immutableRows))
}

const wasModified = `the object has been modified; please apply your changes to the latest version and try again`

// concurrencyRows are updates with and without a resourceVersion.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-consistency
var concurrencyRows = []namedScript{
	{"an update without a resourceVersion is unconditional", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		PUT configmaps/a {"metadata":{"name":"a"},"data":{"k":"1"}}
		200 ConfigMap data.k=1
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"0"},"data":{"k":"2"}}
		200 ConfigMap data.k=2`},
	{"an update of a Lease must have a resourceVersion", `
		PUT leases/a {"metadata":{"name":"a"}}
		201 Lease v:=metadata.resourceVersion
		PUT leases/a {"metadata":{"name":"a"}}
		422 Invalid: leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update
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
	{"an update of an absent object is refused", `
		PUT configmaps/a {"metadata":{"name":"a"}}
		404 NotFound: configmaps "a" not found
		details: name=a kind=configmaps
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"7"}}
		404 NotFound: configmaps "a" not found`},
	{"an update of absent Endpoints creates them", `
		PUT endpoints/a {"metadata":{"name":"a"}}
		201 Endpoints uid:=metadata.uid
		PUT endpoints/a {"metadata":{"name":"a","labels":{"l":"1"}}}
		200 Endpoints metadata.uid=${uid}`},
	{"an update that changes nothing keeps the resourceVersion", `
		POST configmaps {"metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap v:=metadata.resourceVersion
		PUT configmaps/a {"metadata":{"name":"a"},"data":{"k":"1"}}
		200 ConfigMap metadata.resourceVersion=${v}`},
}

// statusRows separate spec and status, and count generations.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
var statusRows = []namedScript{
	{"generation increases with changes of the spec only", `
		POST deployments ` + aDeployment + `
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
		POST deployments ` + strings.Replace(aDeployment, `"spec"`, `"status":{"replicas":7},"spec"`, 1) + `
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

// immutableRows change fields that are immutable.
var immutableRows = []namedScript{
	{"a Deployment's selector", `
		POST deployments ` + aDeployment + `
		201 Deployment
		PATCH deployments/a {"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}}
		422 Invalid: Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable
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
		422 Invalid: RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"y"}: field is immutable`},
}
