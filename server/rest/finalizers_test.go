package rest_test

import "testing"

// TestCascadingDeletion has what
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion says
// about propagation policies.
func TestCascadingDeletion(t *testing.T) { playEach(t, awayOnPostgres, propagationRows) }

var propagationRows = []namedScript{
	{"Foreground keeps the object for the garbage collector", `
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
	{"Background removes the object at once", `
		POST deployments ` + aDeployment + `
		201 Deployment
		DELETE deployments/a?propagationPolicy=Background
		200 Status status=Success`},
	{"Orphan keeps the object until its dependents are orphaned", `
		POST deployments ` + aDeployment + `
		201 Deployment
		DELETE deployments/a?propagationPolicy=Orphan
		200 Deployment metadata.finalizers=["orphan"] metadata.deletionTimestamp=*
		PATCH deployments/a {"metadata":{"finalizers":[]}}
		200 Deployment
		GET deployments/a
		404 NotFound: deployments.apps "a" not found`},
	{"another policy replaces that of a deletion that has begun", `
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
	{"Background completes a foreground deletion", `
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
	{"Background completes a foreground deletion in a dry run and with a precondition", `
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
	{"orphanDependents is the deprecated form of propagationPolicy", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?orphanDependents=true
		200 ConfigMap metadata.finalizers=["orphan"]
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps/b {"orphanDependents":false}
		200 Status status=Success`},
	{"orphanDependents=false is answered with 202 Accepted while a finalizer keeps the object", `
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
	{"events are not garbage collected: the policy is ignored", `
		POST events {"metadata":{"name":"a"},"involvedObject":{"namespace":"NS"}}
		201 Event
		DELETE events/a?propagationPolicy=Orphan
		200 Status status=Success`},
}
