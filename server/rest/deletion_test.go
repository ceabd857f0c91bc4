package rest_test

import (
	"slices"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestDeletion has what https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-deletion
// and the pages that it points to say about deletion.
func TestDeletion(t *testing.T) {
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		h.playAll(t, slices.Concat(deletionPhases, deletionPreconditions, deletionPolicies, deletionOptions,
			deletionGrace, deletionNamespaces, deletionCollections))
	})
}

// Finalization and removal.
var deletionPhases = []namedScript{
	{"without finalizers the object is removed at once, and its name is free", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		DELETE configmaps/a
		200 Status status=Success details.name=a details.kind=configmaps details.uid=${uid} details.group= reason= code=
		GET configmaps/a
		404 NotFound: configmaps "a" not found
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap next:=metadata.uid
		WATCH configmaps
		ADDED metadata.uid=${uid}
		DELETED metadata.uid=${uid} metadata.deletionTimestamp=
		ADDED metadata.uid=${next}`},
	{"the Status names the group", `
		POST deployments {"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}
		201 Deployment
		DELETE deployments/a
		200 Status status=Success details.name=a details.kind=deployments details.group=apps`},
	{"an object as the answer has the revision of its end", `
		POST serviceaccounts {"metadata":{"name":"a","labels":{"a":"b"}}}
		201 ServiceAccount
		DELETE serviceaccounts/a
		200 ServiceAccount metadata.labels.a=b v:=metadata.resourceVersion
		GET serviceaccounts/a
		404 NotFound: serviceaccounts "a" not found
		WATCH serviceaccounts
		ADDED metadata.name=a
		DELETED metadata.name=a metadata.resourceVersion=${v}`},
	{"what does not exist cannot be deleted", `
		DELETE configmaps/a
		404 NotFound: configmaps "a" not found
		DELETE configmaps/No_Name
		404 NotFound: configmaps "No_Name" not found
		DELETE configmaps/a {"preconditions":{"uid":"x"}}
		404 NotFound: configmaps "a" not found
		DELETE /apis/apps/v1/namespaces/nowhere/deployments/a
		404 NotFound: deployments.apps "a" not found`},
	{"with finalizers the object gets a deletionTimestamp and stays", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap metadata.deletionTimestamp=* metadata.deletionGracePeriodSeconds=0 metadata.finalizers=["x.io/a"] v:=metadata.resourceVersion
		GET configmaps/a
		200 ConfigMap metadata.deletionTimestamp=* metadata.resourceVersion=${v}
		POST configmaps {"metadata":{"name":"a"}}
		409 AlreadyExists: object is being deleted: configmaps "a" already exists
		WATCH configmaps
		ADDED metadata.deletionTimestamp=
		MODIFIED metadata.deletionTimestamp=* metadata.resourceVersion=${v}`},
	{"a second delete changes nothing", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap v:=metadata.resourceVersion
		DELETE configmaps/a
		200 ConfigMap metadata.resourceVersion=${v}
		DELETE configmaps/a?gracePeriodSeconds=0
		200 ConfigMap metadata.resourceVersion=${v}
		DELETE configmaps/a?propagationPolicy=Background
		200 ConfigMap metadata.resourceVersion=${v}
		WATCH configmaps
		ADDED metadata.name=a
		MODIFIED metadata.resourceVersion=${v}`},
	{"finalizers go in any order, and the object with the last; the answer is the update, the event what was stored", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/1","x.io/2","x.io/3"]},"data":{"k":"1"}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap
		PATCH configmaps/a {"metadata":{"finalizers":["x.io/3","x.io/1"]}}
		200 ConfigMap metadata.finalizers=["x.io/3","x.io/1"]
		PATCH configmaps/a {"metadata":{"finalizers":["x.io/1"]}}
		200 ConfigMap v:=metadata.resourceVersion
		PATCH configmaps/a {"metadata":{"finalizers":null},"data":{"k":"2"}}
		200 ConfigMap metadata.finalizers= metadata.deletionTimestamp=* metadata.resourceVersion=${v} data.k=2
		GET configmaps/a
		404 NotFound: configmaps "a" not found
		WATCH configmaps
		ADDED data.k=1
		MODIFIED metadata.deletionTimestamp=*
		MODIFIED metadata.finalizers=["x.io/3","x.io/1"]
		MODIFIED metadata.finalizers=["x.io/1"] metadata.resourceVersion=${v}
		DELETED metadata.finalizers=["x.io/1"] data.k=1`},
	{"a PUT without finalizers completes the deletion", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap v:=metadata.resourceVersion
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"1"}}
		409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
		PUT configmaps/a {"metadata":{"name":"a","resourceVersion":"${v}"}}
		200 ConfigMap metadata.deletionTimestamp=* metadata.resourceVersion=${v}
		GET configmaps/a
		404 NotFound: configmaps "a" not found`},
	{"finalizers removed before the deletion do not delete", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		PATCH configmaps/a {"metadata":{"finalizers":null}}
		200 ConfigMap
		GET configmaps/a
		200 ConfigMap metadata.finalizers=
		DELETE configmaps/a
		200 Status status=Success`},
	{"no finalizers can be added once the deletion has begun", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap
		PATCH configmaps/a {"metadata":{"finalizers":["x.io/a","x.io/b"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}`},
	{"the deletion cannot be taken back or put off", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap at:=metadata.deletionTimestamp v:=metadata.resourceVersion
		PATCH configmaps/a {"metadata":{"deletionTimestamp":null}}
		200 ConfigMap metadata.deletionTimestamp=${at} metadata.resourceVersion=${v}
		PATCH configmaps/a {"metadata":{"deletionGracePeriodSeconds":null}}
		200 ConfigMap metadata.deletionGracePeriodSeconds=0 metadata.resourceVersion=${v}
		PATCH configmaps/a {"metadata":{"deletionGracePeriodSeconds":5}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable
		PATCH configmaps/a {"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}
		200 ConfigMap metadata.deletionTimestamp=${at}`},
	{"a deletionTimestamp cannot be created or set", `
		POST configmaps {"metadata":{"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z","deletionGracePeriodSeconds":9}}
		201 ConfigMap metadata.deletionTimestamp= metadata.deletionGracePeriodSeconds=
		PATCH configmaps/a {"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: 2030-01-01 00:00:00 +0000 UTC: field is immutable`},
	{"the beginning of a deletion is a new generation", `
		POST deployments {"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}
		201 Deployment metadata.generation=1
		DELETE deployments/a
		200 Deployment metadata.generation=2
		DELETE deployments/a
		200 Deployment metadata.generation=2
		PATCH deployments/a {"spec":{"replicas":3}}
		200 Deployment metadata.generation=3`},
	{"finalizers that are no names are refused", `
		POST configmaps {"metadata":{"name":"a","finalizers":["orphan","foregroundDeletion"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Invalid value: []string{"orphan", "foregroundDeletion"}: finalizer orphan and foregroundDeletion cannot be both set
		POST configmaps {"metadata":{"name":"a","finalizers":["nodomain"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "nodomain": name is neither a standard finalizer name nor is it fully qualified`},
}

// Preconditions.
var deletionPreconditions = []namedScript{
	{"preconditions that hold", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid v:=metadata.resourceVersion
		DELETE configmaps/a {"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Status status=Success`},
	{"uid of another incarnation", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap old:=metadata.uid
		DELETE configmaps/a
		200 Status
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		DELETE configmaps/a {"preconditions":{"uid":"${old}"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (${old}) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		GET configmaps/a
		200 ConfigMap metadata.uid=${uid}`},
	{"resourceVersion of an older state", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid old:=metadata.resourceVersion
		PATCH configmaps/a {"data":{"k":"1"}}
		200 ConfigMap v:=metadata.resourceVersion
		DELETE configmaps/a {"preconditions":{"resourceVersion":"${old}"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (${old}) does not match the ResourceVersion in record (${v}). The object might have been modified
		DELETE configmaps/a {"preconditions":{"uid":"x","resourceVersion":"${v}"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		DELETE configmaps/a {"preconditions":{"resourceVersion":"${v}"}}
		200 Status status=Success`},
	{"preconditions in the query: resourceVersion and uid by their own names", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid v:=metadata.resourceVersion
		DELETE configmaps/a?resourceVersion=1
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${v}). The object might have been modified
		DELETE configmaps/a?uid=x
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		DELETE configmaps/a?uid=${uid}&resourceVersion=${v}
		200 Status status=Success`},
	{"preconditions of a deletion that has begun", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap uid:=metadata.uid old:=metadata.resourceVersion
		DELETE configmaps/a {"preconditions":{"uid":"${uid}","resourceVersion":"${old}"}}
		200 ConfigMap v:=metadata.resourceVersion
		DELETE configmaps/a {"preconditions":{"resourceVersion":"${old}"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (${old}) does not match the ResourceVersion in record (${v}). The object might have been modified
		DELETE configmaps/a {"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 ConfigMap metadata.resourceVersion=${v}`},
	{"empty preconditions hold", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {"preconditions":{}}
		200 Status status=Success`},
}

const aDeployment = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// Cascading deletion: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion
var deletionPolicies = []namedScript{
	{"foreground holds the object for the garbage collector", `
		POST deployments ` + aDeployment + `
		201 Deployment
		DELETE deployments/a {"kind":"DeleteOptions","apiVersion":"apps/v1","propagationPolicy":"Foreground"}
		200 Deployment metadata.finalizers=["foregroundDeletion"] metadata.deletionTimestamp=* metadata.generation=2 v:=metadata.resourceVersion
		DELETE deployments/a
		200 Deployment metadata.resourceVersion=${v}
		PATCH deployments/a {"metadata":{"finalizers":null}}
		200 Deployment
		GET deployments/a
		404 NotFound: deployments.apps "a" not found`},
	{"background lets it go", `
		POST deployments ` + aDeployment + `
		201 Deployment
		DELETE deployments/a?propagationPolicy=Background
		200 Status status=Success`},
	{"orphan holds it until its dependents are let go", `
		POST deployments ` + aDeployment + `
		201 Deployment
		DELETE deployments/a?propagationPolicy=Orphan
		200 Deployment metadata.finalizers=["orphan"] metadata.deletionTimestamp=*
		PATCH deployments/a {"metadata":{"finalizers":[]}}
		200 Deployment
		GET deployments/a
		404 NotFound: deployments.apps "a" not found`},
	{"another policy replaces the one of a deletion that has begun", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/1","x.io/2"]}}
		201 ConfigMap
		DELETE configmaps/a?propagationPolicy=Orphan
		200 ConfigMap metadata.finalizers=["x.io/1","x.io/2","orphan"]
		DELETE configmaps/a?propagationPolicy=Foreground
		200 ConfigMap metadata.finalizers=["x.io/1","x.io/2","foregroundDeletion"] v:=metadata.resourceVersion
		DELETE configmaps/a
		200 ConfigMap metadata.resourceVersion=${v}
		DELETE configmaps/a?propagationPolicy=Background
		200 ConfigMap metadata.finalizers=["x.io/1","x.io/2"]`},
	{"background completes a foreground deletion", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?propagationPolicy=Foreground
		200 ConfigMap metadata.finalizers=["foregroundDeletion"]
		DELETE configmaps/a?propagationPolicy=Background
		200 Status status=Success
		WATCH configmaps
		ADDED metadata.finalizers=
		MODIFIED metadata.finalizers=["foregroundDeletion"]
		DELETED metadata.finalizers=["foregroundDeletion"]`},
	// kube-apiserver answers the first of these deletes with an empty object and the second
	// with a conflict: it loses sight of the object when its options alone let it go.
	{"so it does in a dry run and with a precondition", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?propagationPolicy=Foreground
		200 ConfigMap v:=metadata.resourceVersion
		DELETE configmaps/a?propagationPolicy=Background&dryRun=All
		200 Status status=Success
		DELETE configmaps/a?propagationPolicy=Background&resourceVersion=${v}
		200 Status status=Success`},
	{"the object's own finalizer is the policy where the request has none", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/1","orphan","x.io/2"]}}
		201 ConfigMap
		DELETE configmaps/a
		200 ConfigMap metadata.finalizers=["x.io/1","orphan","x.io/2"]
		POST configmaps {"metadata":{"name":"b","finalizers":["foregroundDeletion"]}}
		201 ConfigMap
		DELETE configmaps/b
		200 ConfigMap metadata.finalizers=["foregroundDeletion"]
		POST configmaps {"metadata":{"name":"c","finalizers":["orphan"]}}
		201 ConfigMap
		DELETE configmaps/c?propagationPolicy=Background
		200 Status status=Success`},
	{"orphanDependents is the older word for a policy", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?orphanDependents=true
		200 ConfigMap metadata.finalizers=["orphan"]
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps/b {"orphanDependents":false}
		200 Status status=Success`},
	{"orphanDependents=false is only accepted while something holds the object", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a?orphanDependents=false
		202 ConfigMap metadata.finalizers=["x.io/a"]
		DELETE configmaps/a {"orphanDependents":false}
		202 ConfigMap metadata.finalizers=["x.io/a"]`},
	{"jobs orphan their pods by default and warn of it", `
		POST jobs {"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}
		201 Job metadata.labels.job-name=a
		DELETE jobs/a
		200 Job metadata.finalizers=["orphan"]
		warning: child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning
		DELETE jobs/nobody
		404 NotFound: jobs.batch "nobody" not found
		warning: child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning
		DELETE jobs?labelSelector=a=b
		200 JobList
		warning: child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning
		DELETE jobs/a?propagationPolicy=Background
		200 Status status=Success
		warning:`},
	{"replication controllers orphan their pods by default, silently", `
		POST replicationcontrollers {"metadata":{"name":"a"},"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}
		201 ReplicationController
		DELETE replicationcontrollers/a
		200 ReplicationController metadata.finalizers=["orphan"]
		warning:`},
	{"events cannot orphan or wait", `
		POST events {"metadata":{"name":"a"},"involvedObject":{"namespace":"NS"}}
		201 Event
		DELETE events/a?propagationPolicy=Orphan
		200 Status status=Success`},
}

// DeleteOptions, in the body or in the query.
var deletionOptions = []namedScript{
	{"DeleteOptions of any group and version, without any, and in YAML", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a {"apiVersion":"v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"batch/v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"nowhere.io/v9","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {}
		200 ConfigMap
		DELETE configmaps/a null
		200 ConfigMap
		DELETE configmaps/a Content-Type:application/yaml kind: DeleteOptions\npropagationPolicy: Orphan\n
		200 ConfigMap metadata.finalizers=["x.io/a","orphan"]
		DELETE configmaps/a {"nope":1}
		200 ConfigMap metadata.finalizers=["x.io/a","orphan"]`},
	{"a body of another kind", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {"apiVersion":"v1","kind":"CreateOptions"}
		500 : converting (v1.CreateOptions) to (v1.DeleteOptions): unknown conversion
		DELETE configmaps/a {"apiVersion":"v1","kind":"Status"}
		500 : converting (v1.Status) to (v1.DeleteOptions): unknown conversion`},
	{"a body that cannot be read", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {
		500 : couldn't get version/kind; json parse error: unexpected end of JSON input
		DELETE configmaps/a {"gracePeriodSeconds":"x"}
		500 : json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64
		DELETE configmaps/a {"dryRun":"All"}
		500 : json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string
		DELETE configmaps/a Content-Type:application/vnd.kubernetes.protobuf xx
		500 : provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]
		DELETE configmaps/a Content-Type:text/plain {}
		415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
	{"a policy that is none", `
		DELETE configmaps/a {"propagationPolicy":"Later"}
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Later": supported values: "Foreground", "Background", "Orphan", "nil"
		DELETE configmaps/a?propagationPolicy=foreground
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "foreground": supported values: "Foreground", "Background", "Orphan", "nil"
		DELETE configmaps/a?propagationPolicy=
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": supported values: "Foreground", "Background", "Orphan", "nil"`},
	{"orphanDependents and propagationPolicy exclude each other", `
		DELETE configmaps/a {"propagationPolicy":"Background","orphanDependents":true}
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set
		DELETE configmaps/a?orphanDependents=true&propagationPolicy=Orphan
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set`},
	{"a query that cannot be read", `
		DELETE configmaps/a?gracePeriodSeconds=x
		400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax
		DELETE configmaps/a?gracePeriodSeconds=1.5
		400 BadRequest: strconv.ParseInt: parsing "1.5": invalid syntax`},
	{"a body beats the query", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?propagationPolicy=Orphan {"propagationPolicy":"Background"}
		200 Status status=Success`},
	{"unknown parameters mean nothing", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?nope=1&pretty=true&fieldManager=x&timeout=5s&preconditions.uid=x
		200 Status status=Success`},
	{"system priority classes stay", `
		DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical
		403 Forbidden: priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted
		DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical?propagationPolicy=Orphan
		403 Forbidden: priorityclasses.scheduling.k8s.io "system-cluster-critical" is forbidden: this is a system priority class and cannot be deleted`},
}
