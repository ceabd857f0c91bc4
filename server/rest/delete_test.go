package rest_test

import (
	"slices"
	"testing"
)

// TestDeletion has what
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-deletion says about
// finalization, removal and preconditions.
func TestDeletion(t *testing.T) {
	playEach(t, awayOnOthers, slices.Concat(removalRows, preconditionRows))
}

// removalRows are finalization and removal.
var removalRows = []namedScript{
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
	{"an object in the answer has the resourceVersion of its deletion", `
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
	{"finalizers are removed in any order, and the object with the last; the answer is the updated object, the event the stored one", `
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
	{"a deletion cannot be undone or postponed", `
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
	{"clients cannot set deletionTimestamp", `
		POST configmaps {"metadata":{"name":"a","deletionTimestamp":"2030-01-01T00:00:00Z","deletionGracePeriodSeconds":9}}
		201 ConfigMap metadata.deletionTimestamp= metadata.deletionGracePeriodSeconds=
		PATCH configmaps/a {"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}
		422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable`},
	{"the beginning of a deletion increases the generation", `
		POST deployments {"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}
		201 Deployment metadata.generation=1
		DELETE deployments/a
		200 Deployment metadata.generation=2
		DELETE deployments/a
		200 Deployment metadata.generation=2
		PATCH deployments/a {"spec":{"replicas":3}}
		200 Deployment metadata.generation=3`},
	{"finalizers must be qualified names", `
		POST configmaps {"metadata":{"name":"a","finalizers":["orphan","foregroundDeletion"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set
		POST configmaps {"metadata":{"name":"a","finalizers":["nodomain"]}}
		422 Invalid: ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "nodomain": name is neither a standard finalizer name nor is it fully qualified`},
}

// preconditionRows delete under preconditions.
var preconditionRows = []namedScript{
	{"preconditions that hold", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid v:=metadata.resourceVersion
		DELETE configmaps/a {"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Status status=Success`},
	{"the uid of an earlier object of the same name", `
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
	{"the resourceVersion of an older state", `
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
