package rest_test

// onNode and pod are pods with and without a node.
const (
	onNode = `{"metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	pod    = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	heldOn = `{"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	held   = `{"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"containers":[{"name":"c","image":"i"}]}}`
)

// Grace periods: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
// What the kubelet does there is the test's part.
var deletionGrace = []namedScript{
	{"a pod on a node is given its grace period, and the kubelet completes the deletion", `
		POST pods ` + onNode + `
		201 Pod metadata.generation=1
		DELETE pods/a
		200 Pod metadata.deletionTimestamp=* metadata.deletionGracePeriodSeconds=30 metadata.generation=2 v:=metadata.resourceVersion
		DELETE pods/a
		200 Pod metadata.resourceVersion=${v}
		POST pods ` + pod + `
		409 AlreadyExists: object is being deleted: pods "a" already exists
		PATCH pods/a/status {"status":{"phase":"Succeeded"}}
		200 Pod metadata.deletionGracePeriodSeconds=30
		DELETE pods/a?gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0
		GET pods/a
		404 NotFound: pods "a" not found
		POST pods ` + pod + `
		201 Pod
		WATCH pods
		ADDED metadata.generation=1
		MODIFIED metadata.deletionGracePeriodSeconds=30 metadata.resourceVersion=${v}
		MODIFIED status.phase=Succeeded
		MODIFIED metadata.deletionGracePeriodSeconds=0
		DELETED metadata.deletionGracePeriodSeconds=0 metadata.generation=2
		ADDED metadata.name=a`},
	{"the pod's own terminationGracePeriodSeconds", `
		POST pods {"metadata":{"name":"a"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":5,"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=5`},
	{"a negative terminationGracePeriodSeconds is one second", `
		POST pods {"metadata":{"name":"a"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":-5,"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=1`},
	{"no terminationGracePeriodSeconds: at once", `
		POST pods {"metadata":{"name":"a"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=0
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"the request's gracePeriodSeconds overrides the pod's", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a {"gracePeriodSeconds":10}
		200 Pod metadata.deletionGracePeriodSeconds=10`},
	{"a negative gracePeriodSeconds is one second", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?gracePeriodSeconds=-5
		200 Pod metadata.deletionGracePeriodSeconds=1
		GET pods/a
		200 Pod`},
	{"gracePeriodSeconds=0 deletes by force", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0 metadata.deletionTimestamp=*
		GET pods/a
		404 NotFound: pods "a" not found
		WATCH pods
		ADDED metadata.deletionTimestamp=
		MODIFIED metadata.deletionGracePeriodSeconds=0
		DELETED metadata.deletionGracePeriodSeconds=0`},
	{"the grace period can only be shortened", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a
		200 Pod v:=metadata.resourceVersion
		DELETE pods/a?gracePeriodSeconds=100
		200 Pod metadata.deletionGracePeriodSeconds=30 metadata.resourceVersion=${v}
		DELETE pods/a?gracePeriodSeconds=30
		200 Pod metadata.deletionGracePeriodSeconds=30 metadata.resourceVersion=${v}
		DELETE pods/a?gracePeriodSeconds=20
		200 Pod metadata.deletionGracePeriodSeconds=20 metadata.generation=2
		DELETE pods/a?gracePeriodSeconds=-7
		200 Pod metadata.deletionGracePeriodSeconds=1`},
	{"a pod without a node is deleted at once, whatever the grace period", `
		POST pods ` + pod + `
		201 Pod
		DELETE pods/a?gracePeriodSeconds=10
		200 Pod metadata.deletionGracePeriodSeconds=0 metadata.deletionTimestamp=*
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a pod that has ended is deleted at once", `
		POST pods ` + onNode + `
		201 Pod
		PATCH pods/a/status {"status":{"phase":"Succeeded"}}
		200 Pod
		DELETE pods/a?gracePeriodSeconds=10
		200 Pod metadata.deletionGracePeriodSeconds=0
		POST pods ` + onNode + `
		201 Pod
		PATCH pods/a/status {"status":{"phase":"Failed"}}
		200 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=0
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a pod that runs is not", `
		POST pods ` + onNode + `
		201 Pod
		PATCH pods/a/status {"status":{"phase":"Running"}}
		200 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=30
		GET pods/a
		200 Pod`},
	{"finalizers hold a pod beyond its grace period", `
		POST pods ` + heldOn + `
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=30
		DELETE pods/a?gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0 metadata.finalizers=["x.io/a"] v:=metadata.resourceVersion
		DELETE pods/a?gracePeriodSeconds=5
		200 Pod metadata.deletionGracePeriodSeconds=0 metadata.resourceVersion=${v}
		PATCH pods/a {"metadata":{"finalizers":null}}
		200 Pod metadata.deletionGracePeriodSeconds=0
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"the grace period holds a pod beyond its finalizers", `
		POST pods ` + heldOn + `
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=30
		PATCH pods/a {"metadata":{"finalizers":null}}
		200 Pod metadata.deletionGracePeriodSeconds=30
		GET pods/a
		200 Pod metadata.finalizers=
		DELETE pods/a?gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"finalizers hold a pod without a node", `
		POST pods ` + held + `
		201 Pod
		DELETE pods/a
		200 Pod metadata.deletionGracePeriodSeconds=0
		PATCH pods/a {"metadata":{"finalizers":[]}}
		200 Pod
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a policy comes on top of the grace period, and not once that runs", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?propagationPolicy=Foreground
		200 Pod metadata.deletionGracePeriodSeconds=30 metadata.finalizers=["foregroundDeletion"] v:=metadata.resourceVersion
		DELETE pods/a?propagationPolicy=Orphan
		200 Pod metadata.finalizers=["foregroundDeletion"] metadata.resourceVersion=${v}`},
	{"orphanDependents=false of a pod that is given time is accepted only", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?orphanDependents=false
		202 Pod metadata.deletionGracePeriodSeconds=30
		DELETE pods/a?orphanDependents=false&gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0`},
	{"preconditions of a forced deletion", `
		POST pods ` + onNode + `
		201 Pod uid:=metadata.uid v:=metadata.resourceVersion
		DELETE pods/a {"gracePeriodSeconds":0,"preconditions":{"uid":"x"}}
		409 Conflict: Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		DELETE pods/a {"gracePeriodSeconds":0,"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Pod
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"the grace period is not the client's to write", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a
		200 Pod
		PATCH pods/a {"metadata":{"deletionGracePeriodSeconds":3}}
		422 Invalid: Pod "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable`},
	{"other kinds have no grace period", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?gracePeriodSeconds=100
		200 Status status=Success
		GET configmaps/a
		404 NotFound: configmaps "a" not found`},
}

// Namespaces: https://kubernetes.io/docs/tasks/administer-cluster/namespaces/#deleting-a-namespace
// What the namespace controller does there is the test's part.
var deletionNamespaces = []namedScript{
	{"a namespace terminates, and goes when its finalizers are empty", `
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
	{"policies of a namespace", `
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
	{"a namespace that was finalized before goes with the second delete", `
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
	{"namespaces are not deleted as a collection", `
		DELETE /api/v1/namespaces
		405 MethodNotAllowed: the server does not allow this method on the requested resource`},
}
