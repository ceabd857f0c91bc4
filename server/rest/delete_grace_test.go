package rest_test

import "testing"

// TestGracePeriods has what
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination says about
// grace periods. The rows do what the kubelet does there.
func TestGracePeriods(t *testing.T) { playEach(t, awayOnOthers, graceRows) }

var graceRows = []namedScript{
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
	{"terminationGracePeriodSeconds=0: the pod is deleted at once", `
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
	{"a pod that runs is given its grace period", `
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
	{"a propagation policy is recorded with the grace period, but not while it runs", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?propagationPolicy=Foreground
		200 Pod metadata.deletionGracePeriodSeconds=30 metadata.finalizers=["foregroundDeletion"] v:=metadata.resourceVersion
		DELETE pods/a?propagationPolicy=Orphan
		200 Pod metadata.finalizers=["foregroundDeletion"] metadata.resourceVersion=${v}`},
	{"orphanDependents=false with a grace period is answered with 202 Accepted", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods/a?orphanDependents=false
		202 Pod metadata.deletionGracePeriodSeconds=30
		DELETE pods/a?orphanDependents=false&gracePeriodSeconds=0
		200 Pod metadata.deletionGracePeriodSeconds=0`},
	{"a forced deletion has preconditions too", `
		POST pods ` + onNode + `
		201 Pod uid:=metadata.uid v:=metadata.resourceVersion
		DELETE pods/a {"gracePeriodSeconds":0,"preconditions":{"uid":"x"}}
		409 Conflict: Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		DELETE pods/a {"gracePeriodSeconds":0,"preconditions":{"uid":"${uid}","resourceVersion":"${v}"}}
		200 Pod
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"clients cannot write deletionGracePeriodSeconds", `
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
