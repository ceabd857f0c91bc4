package rest_test

import (
	"fmt"
	"slices"
	"testing"
)

// TestDryRun has what https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run
// says. Scripts also check that a dry run writes nothing.
func TestDryRun(t *testing.T) {
	playEach(t, awayOnOthers, slices.Concat(dryRunValues(), dryRunVerbs, dryRunStages, dryRunSubresources))
}

// dryRunValues sends each invalid value with each verb.
func dryRunValues() (rows []namedScript) {
	for _, v := range []struct{ name, query, shown string }{
		{"empty", "dryRun=", `""`},
		{"without a value", "dryRun", `""`},
		{"unknown", "dryRun=Some", `"Some"`},
		{"All in lower case", "dryRun=all", `"all"`},
		{"a boolean", "dryRun=true", `"true"`},
		{"All among others", "dryRun=All&dryRun=Some", `"All","Some"`},
		{"All and nothing", "dryRun=&dryRun=All", `"","All"`},
		{"a list in one value", "dryRun=All,All", `"All,All"`},
		{"All behind a space", "dryRun=%20All", `" All"`},
	} {
		refusal := func(options string) string {
			return fmt.Sprintf(`422 Invalid: %s.meta.k8s.io "" is invalid: dryRun: Unsupported value: [%s]: supported values: "All"`, options, v.shown) + "\n"
		}
		rows = append(rows, namedScript{"a value that is not accepted: " + v.name,
			`POST configmaps {"metadata":{"name":"a"}}
			201 ConfigMap
			POST configmaps?` + v.query + ` {"metadata":{"name":"b"}}
			` + refusal("CreateOptions") + `
			PUT configmaps/a?` + v.query + ` {"metadata":{"name":"a"}}
			` + refusal("UpdateOptions") + `
			PATCH configmaps/a?` + v.query + ` {"data":{"k":"1"}}
			` + refusal("PatchOptions") + `
			PATCH configmaps/a?` + v.query + ` Content-Type:application/json-patch+json []
			` + refusal("PatchOptions") + `
			PATCH configmaps/a?` + v.query + ` Content-Type:application/strategic-merge-patch+json {}
			` + refusal("PatchOptions") + `
			DELETE configmaps/a?` + v.query + `
			` + refusal("DeleteOptions") + `
			DELETE configmaps?` + v.query + `
			` + refusal("DeleteOptions") + `
			PATCH deployments/a/scale?` + v.query + ` {}
			` + refusal("PatchOptions") + `
			PATCH deployments/a/status?` + v.query + ` {}
			` + refusal("PatchOptions") + `
			GET configmaps/a?` + v.query + `
			200 ConfigMap`})
	}
	return rows
}

var dryRunVerbs = []namedScript{
	{"create: the object as it would be, with uid and time, without resourceVersion", `
		POST configmaps?dryRun=All {"metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap metadata.uid=* metadata.creationTimestamp=* metadata.resourceVersion= data.k=1 metadata.namespace=NS
		GET configmaps/a
		404 NotFound: configmaps "a" not found
		WATCH configmaps`},
	{"create: names are generated", `
		POST configmaps?dryRun=All {"metadata":{"generateName":"a-"}}
		201 ConfigMap metadata.name=* metadata.generateName=a-
		GET configmaps
		200 ConfigMapList items=[]`},
	{"All twice is All", `
		POST configmaps?dryRun=All&dryRun=All {"metadata":{"name":"a"}}
		201 ConfigMap
		GET configmaps/a
		404 NotFound: configmaps "a" not found`},
	{"the parameter's name is case-sensitive", `
		POST configmaps?dryrun=All {"metadata":{"name":"a"}}
		201 ConfigMap metadata.resourceVersion=*
		GET configmaps/a
		200 ConfigMap`},
	{"a resourceVersion given on create is shown", `
		POST configmaps?dryRun=All {"metadata":{"name":"a","resourceVersion":"5"}}
		201 ConfigMap metadata.resourceVersion=5
		POST configmaps {"metadata":{"name":"a","resourceVersion":"5"}}
		500 : resourceVersion should not be set on objects to be created`},
	{"update: the object as it would be, with the old resourceVersion", `
		POST configmaps {"metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap v:=metadata.resourceVersion uid:=metadata.uid
		PUT configmaps/a?dryRun=All {"metadata":{"name":"a"},"data":{"k":"2"}}
		200 ConfigMap data.k=2 metadata.resourceVersion=${v} metadata.uid=${uid}
		PUT configmaps/a?dryRun=All {"metadata":{"name":"a"},"data":{"k":"1"}}
		200 ConfigMap data.k=1 metadata.resourceVersion=${v}
		GET configmaps/a
		200 ConfigMap data.k=1 metadata.resourceVersion=${v}
		WATCH configmaps
		ADDED data.k=1`},
	{"update as create", `
		PUT leases/a?dryRun=All {"metadata":{"name":"a"}}
		201 Lease metadata.uid=* metadata.resourceVersion=
		GET leases/a
		404 NotFound: leases.coordination.k8s.io "a" not found`},
	{"each type of patch", `
		POST configmaps {"metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap v:=metadata.resourceVersion
		PATCH configmaps/a?dryRun=All {"data":{"k":"2"}}
		200 ConfigMap data.k=2 metadata.resourceVersion=${v}
		PATCH configmaps/a?dryRun=All Content-Type:application/json-patch+json [{"op":"replace","path":"/data/k","value":"3"}]
		200 ConfigMap data.k=3 metadata.resourceVersion=${v}
		PATCH configmaps/a?dryRun=All Content-Type:application/strategic-merge-patch+json {"data":{"k":"4"}}
		200 ConfigMap data.k=4 metadata.resourceVersion=${v}
		PATCH configmaps/a?dryRun=All {}
		200 ConfigMap data.k=1 metadata.resourceVersion=${v}
		GET configmaps/a
		200 ConfigMap data.k=1 metadata.resourceVersion=${v}`},
	{"apply: creation, change, conflict and force", `
		PATCH configmaps/a?dryRun=All&fieldManager=m Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap data.k=1 metadata.uid=* metadata.resourceVersion= metadata.managedFields.0.manager=m
		GET configmaps/a
		404 NotFound: configmaps "a" not found
		PATCH configmaps/a?fieldManager=m Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}
		201 ConfigMap v:=metadata.resourceVersion
		PATCH configmaps/a?dryRun=All&fieldManager=m Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"2"}}
		200 ConfigMap data.k=2 metadata.resourceVersion=${v}
		PATCH configmaps/a?dryRun=All&fieldManager=n Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"3"}}
		409 Conflict: Apply failed with 1 conflict: conflict with "m": .data.k
		PATCH configmaps/a?dryRun=All&fieldManager=n&force=true Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"3"}}
		200 ConfigMap data.k=3 metadata.resourceVersion=${v}
		PATCH configmaps/a?dryRun=Some&fieldManager=m Content-Type:application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}
		422 Invalid: PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
		GET configmaps/a
		200 ConfigMap data.k=1 metadata.resourceVersion=${v}`},
	{"delete, in the query and in the body", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		DELETE configmaps/a?dryRun=All
		200 Status status=Success details.uid=${uid}
		DELETE configmaps/a {"dryRun":["All"]}
		200 Status status=Success details.uid=${uid}
		DELETE configmaps/a {"dryRun":["All","All"]}
		200 Status status=Success details.uid=${uid}
		DELETE configmaps/a {"dryRun":["Some"]}
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"
		GET configmaps/a
		200 ConfigMap metadata.deletionTimestamp=
		WATCH configmaps
		ADDED metadata.uid=${uid}`},
	{"delete: a body without dryRun beats the query, and an empty list is none", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?dryRun=All {"gracePeriodSeconds":0}
		200 Status stored status=Success
		GET configmaps/a
		404 NotFound: configmaps "a" not found
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {"dryRun":[]}
		200 Status stored
		GET configmaps/a
		404 NotFound: configmaps "a" not found`},
	{"delete of an object that finalizers hold", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap v:=metadata.resourceVersion
		DELETE configmaps/a?dryRun=All&propagationPolicy=Foreground
		200 ConfigMap metadata.deletionTimestamp=* metadata.finalizers=["x.io/a","foregroundDeletion"] metadata.resourceVersion=${v}
		GET configmaps/a
		200 ConfigMap metadata.deletionTimestamp= metadata.finalizers=["x.io/a"]
		DELETE configmaps/a
		200 ConfigMap v:=metadata.resourceVersion
		PATCH configmaps/a?dryRun=All {"metadata":{"finalizers":null}}
		200 ConfigMap metadata.finalizers=
		GET configmaps/a
		200 ConfigMap metadata.finalizers=["x.io/a"] metadata.resourceVersion=${v}`},
	{"delete of a pod, gracefully and by force", `
		POST pods ` + onNode + `
		201 Pod v:=metadata.resourceVersion
		DELETE pods/a?dryRun=All
		200 Pod metadata.deletionGracePeriodSeconds=30 metadata.generation=2 metadata.resourceVersion=${v}
		DELETE pods/a?dryRun=All&gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0 metadata.resourceVersion=${v}
		GET pods/a
		200 Pod metadata.deletionTimestamp= metadata.generation=1`},
	{"delete of a namespace", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace v:=metadata.resourceVersion
		DELETE /api/v1/namespaces/NS?dryRun=All
		200 Namespace status.phase=Terminating metadata.resourceVersion=${v}
		GET /api/v1/namespaces/NS
		200 Namespace status.phase=Active metadata.deletionTimestamp=`},
	{"deletecollection", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps?dryRun=All
		200 ConfigMapList items.0.metadata.name=a items.1.metadata.name=b
		DELETE configmaps?limit=1&dryRun=All
		200 ConfigMapList items.0.metadata.name=a items.1= metadata.continue=*
		DELETE configmaps {"dryRun":["All"]}
		200 ConfigMapList items.0.metadata.name=a
		GET configmaps
		200 ConfigMapList items.0.metadata.name=a items.1.metadata.deletionTimestamp=`},
	{"the encodings of the answer", `
		POST configmaps?dryRun=All Accept:application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io {"metadata":{"name":"a"}}
		201 PartialObjectMetadata metadata.name=a metadata.uid=*
		POST configmaps?dryRun=All Accept:application/json;as=Table;v=v1;g=meta.k8s.io {"metadata":{"name":"a"}}
		201 Table rows.0.cells.0=a rows.0.object.metadata.uid=*`},
	{"reviews, which store nothing anyway", `
		POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=All {"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}
		201 SelfSubjectAccessReview
		POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=x {"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}
		422 Invalid: CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
}

// dryRunStages are requests for which every stage but the final storage stage runs as usual.
var dryRunStages = []namedScript{
	{"bodies that cannot be read", `
		POST configmaps?dryRun=All {
		400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)
		POST configmaps?dryRun=All Content-Type:text/plain {}
		415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
	{"field validation", `
		POST configmaps?dryRun=All&fieldValidation=Strict {"metadata":{"name":"a"},"nope":1}
		400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nope"
		POST configmaps?dryRun=All {"metadata":{"name":"a"},"nope":1}
		201 ConfigMap
		warning: unknown field "nope"`},
	{"defaults", `
		POST pods?dryRun=All ` + pod + `
		201 Pod spec.restartPolicy=Always spec.terminationGracePeriodSeconds=30 status.phase=Pending status.qosClass=BestEffort
		POST jobs?dryRun=All {"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}
		201 Job spec.backoffLimit=6 metadata.labels.job-name=a`},
	{"validation", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps?dryRun=All {"metadata":{}}
		422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
		POST pods?dryRun=All {"metadata":{"name":"a"},"spec":{"containers":[]}}
		422 Invalid: Pod "a" is invalid: spec.containers: Required value
		PATCH configmaps/a?dryRun=All {"metadata":{"uid":"x"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable
		PUT leases/a?dryRun=All {"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":-1}}
		422 Invalid: Lease.coordination.k8s.io "a" is invalid: spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0`},
	{"names in use", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps?dryRun=All {"metadata":{"name":"a"}}
		409 AlreadyExists: configmaps "a" already exists
		POST configmaps?dryRun=All {"metadata":{"name":"a","generateName":"a"}}
		409 AlreadyExists: configmaps "a" already exists, the server was not able to generate a unique name for the object`},
	{"absent objects", `
		PUT configmaps/a?dryRun=All {"metadata":{"name":"a"}}
		404 NotFound: configmaps "a" not found
		PATCH configmaps/a?dryRun=All {}
		404 NotFound: configmaps "a" not found
		DELETE configmaps/a?dryRun=All
		404 NotFound: configmaps "a" not found
		PUT configmaps/a?dryRun=All {"metadata":{"name":"b"}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)`},
	{"conflicts", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap v:=metadata.resourceVersion
		PUT configmaps/a?dryRun=All {"metadata":{"name":"a","resourceVersion":"1"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
		PATCH configmaps/a?dryRun=All {"metadata":{"resourceVersion":"1"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
		PUT configmaps/a?dryRun=All {"metadata":{"name":"a","resourceVersion":"${v}"},"data":{"k":"1"}}
		200 ConfigMap data.k=1
		POST leases {"metadata":{"name":"a"}}
		201 Lease
		PUT leases/a?dryRun=All {"metadata":{"name":"a"}}
		422 Invalid: leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
	{"preconditions", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid v:=metadata.resourceVersion
		DELETE configmaps/a {"dryRun":["All"],"preconditions":{"uid":"x"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		DELETE configmaps/a {"dryRun":["All"],"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Status status=Success`},
	{"patches that fail", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		PATCH configmaps/a?dryRun=All Content-Type:application/json-patch+json [{"op":"test","path":"/metadata/name","value":"b"}]
		422 Invalid: the server rejected our request due to an error in our request`},
	{"changes of immutable fields", `
		POST deployments ` + aDeployment + `
		201 Deployment
		PATCH deployments/a?dryRun=All {"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}}
		422 Invalid: Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable`},
}

// dryRunSubresources are dry runs of writes to subresources.
var dryRunSubresources = []namedScript{
	{"generation and status", `
		POST deployments ` + aDeployment + `
		201 Deployment metadata.generation=1
		PATCH deployments/a?dryRun=All {"spec":{"replicas":3}}
		200 Deployment metadata.generation=2 spec.replicas=3
		PATCH deployments/a/status?dryRun=All {"status":{"replicas":4}}
		200 Deployment metadata.generation=1 status.replicas=4
		PATCH deployments/a/status?dryRun=All {"status":{"replicas":-4}}
		422 Invalid: Deployment.apps "a" is invalid: [status.replicas: Invalid value: -4: must be greater than or equal to 0, status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas, status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas, status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas]
		PATCH deployments/nobody/status?dryRun=All {}
		404 NotFound: deployments.apps "nobody" not found
		GET deployments/a
		200 Deployment metadata.generation=1 spec.replicas=1 status.replicas=`},
	{"scale", `
		POST deployments ` + aDeployment + `
		201 Deployment v:=metadata.resourceVersion
		PUT deployments/a/scale?dryRun=All {"metadata":{"name":"a","namespace":"NS"},"spec":{"replicas":7}}
		200 Scale spec.replicas=7 metadata.resourceVersion=${v}
		PATCH deployments/a/scale?dryRun=All {"spec":{"replicas":8}}
		200 Scale spec.replicas=8 metadata.resourceVersion=${v}
		PATCH deployments/a/scale?dryRun=All {"spec":{"replicas":-8}}
		422 Invalid: Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -8: must be greater than or equal to 0
		GET deployments/a/scale
		200 Scale spec.replicas=1`},
	{"the subresources of a pod", `
		POST pods ` + onNode + `
		201 Pod v:=metadata.resourceVersion
		PATCH pods/a/ephemeralcontainers?dryRun=All Content-Type:application/strategic-merge-patch+json {"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}
		200 Pod spec.ephemeralContainers.0.name=e metadata.resourceVersion=${v}
		PATCH pods/a/status?dryRun=All {"status":{"phase":"Running"}}
		200 Pod status.phase=Running metadata.resourceVersion=${v}
		GET pods/a
		200 Pod spec.ephemeralContainers= status.phase=Pending metadata.resourceVersion=${v}`},
	{"a namespace's finalizers", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace
		PUT /api/v1/namespaces/NS/finalize?dryRun=All {"metadata":{"name":"NS"},"spec":{}}
		200 Namespace spec.finalizers=
		DELETE /api/v1/namespaces/NS
		200 Namespace
		PUT /api/v1/namespaces/NS/finalize?dryRun=All {"metadata":{"name":"NS"},"spec":{}}
		200 Namespace
		GET /api/v1/namespaces/NS
		200 Namespace spec.finalizers=["kubernetes"]`},
}
