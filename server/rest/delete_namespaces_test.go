package rest_test

import "testing"

// TestDeletionOfNamespaces has what
// https://kubernetes.io/docs/tasks/administer-cluster/namespaces/#deleting-a-namespace says. The
// rows do what the namespace controller does there.
func TestDeletionOfNamespaces(t *testing.T) { playEach(t, awayOnPostgres, namespaceRows) }

var namespaceRows = []namedScript{
	{"a namespace terminates, and is removed when its spec.finalizers are empty", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace status.phase=Active spec.finalizers=["kubernetes"]
		DELETE /api/v1/namespaces/NS
		200 Namespace status.phase=Terminating metadata.deletionTimestamp=* metadata.deletionGracePeriodSeconds= spec.finalizers=["kubernetes"] v:=metadata.resourceVersion
		DELETE /api/v1/namespaces/NS
		200 Namespace metadata.resourceVersion=${v}
		DELETE /api/v1/namespaces/NS?gracePeriodSeconds=0
		200 Namespace metadata.resourceVersion=${v}
		PATCH /api/v1/namespaces/NS {"metadata":{"labels":{"a":"b"}}}
		200 Namespace metadata.labels.a=b status.phase=Terminating
		PUT /api/v1/namespaces/NS/finalize {"metadata":{"name":"NS"},"spec":{}}
		200 Namespace spec.finalizers= status.phase=Terminating
		GET /api/v1/namespaces/NS
		404 NotFound: namespaces "NS" not found
		WATCH /api/v1/namespaces
		ADDED status.phase=Active
		MODIFIED status.phase=Terminating metadata.resourceVersion=${v}
		MODIFIED metadata.labels.a=b
		DELETED spec.finalizers=["kubernetes"] metadata.labels.a=b`},
	{"finalizers of the metadata hold a namespace too", `
		POST /api/v1/namespaces {"metadata":{"name":"NS","finalizers":["x.io/a"]}}
		201 Namespace
		DELETE /api/v1/namespaces/NS
		200 Namespace
		PUT /api/v1/namespaces/NS/finalize {"metadata":{"name":"NS","finalizers":["x.io/a"]},"spec":{}}
		200 Namespace spec.finalizers=
		DELETE /api/v1/namespaces/NS
		200 Namespace metadata.finalizers=["x.io/a"] metadata.deletionGracePeriodSeconds=0
		PATCH /api/v1/namespaces/NS {"metadata":{"finalizers":null}}
		200 Namespace
		GET /api/v1/namespaces/NS
		404 NotFound: namespaces "NS" not found`},
	{"propagation policies of a namespace", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace
		DELETE /api/v1/namespaces/NS?propagationPolicy=Foreground
		200 Namespace metadata.finalizers=["foregroundDeletion"] v:=metadata.resourceVersion
		DELETE /api/v1/namespaces/NS?propagationPolicy=Orphan
		200 Namespace metadata.finalizers=["foregroundDeletion"] metadata.resourceVersion=${v}
		POST /api/v1/namespaces {"metadata":{"name":"NS-b"}}
		201 Namespace
		DELETE /api/v1/namespaces/NS-b {"propagationPolicy":"Orphan"}
		200 Namespace metadata.finalizers=["orphan"]
		POST /api/v1/namespaces {"metadata":{"name":"NS-c"}}
		201 Namespace
		DELETE /api/v1/namespaces/NS-c?propagationPolicy=Background
		200 Namespace metadata.finalizers=`},
	{"orphanDependents=false of a namespace is foreground deletion", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace
		DELETE /api/v1/namespaces/NS?orphanDependents=false
		202 Namespace metadata.finalizers=["foregroundDeletion"]
		POST /api/v1/namespaces {"metadata":{"name":"NS-b"}}
		201 Namespace
		DELETE /api/v1/namespaces/NS-b?orphanDependents=true
		200 Namespace metadata.finalizers=["orphan"]`},
	{"preconditions of a namespace", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace uid:=metadata.uid v:=metadata.resourceVersion
		DELETE /api/v1/namespaces/NS {"preconditions":{"uid":"x"}}
		409 Conflict: Operation cannot be fulfilled on namespaces "NS": Precondition failed: UID in precondition: x, UID in object meta: ${uid}
		DELETE /api/v1/namespaces/NS {"preconditions":{"uid":"${uid}","resourceVersion":"1"}}
		409 Conflict: Operation cannot be fulfilled on namespaces "NS": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: ${v}
		DELETE /api/v1/namespaces/NS {"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Namespace status.phase=Terminating`},
	{"a namespace that was finalized before its deletion is removed by the second delete", `
		POST /api/v1/namespaces {"metadata":{"name":"NS"}}
		201 Namespace
		PUT /api/v1/namespaces/NS/finalize {"metadata":{"name":"NS"},"spec":{}}
		200 Namespace
		DELETE /api/v1/namespaces/NS
		200 Namespace status.phase=Terminating
		GET /api/v1/namespaces/NS
		200 Namespace
		DELETE /api/v1/namespaces/NS
		200 Namespace
		GET /api/v1/namespaces/NS
		404 NotFound: namespaces "NS" not found`},
	{"namespaces have no deletecollection", `
		DELETE /api/v1/namespaces
		405 MethodNotAllowed: the server does not allow this method on the requested resource`},
}
