package rest_test

import "testing"

// TestDeleteCollection wants deletecollection to delete what a list with the same parameters
// returns.
func TestDeleteCollection(t *testing.T) { playEach(t, awayOnPostgres, deleteCollectionRows) }

var deleteCollectionRows = []namedScript{
	{"all objects of a namespace are deleted, and the list is the answer", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps
		200 ConfigMapList items.0.metadata.name=a items.1.metadata.name=b items.2= metadata.continue= metadata.resourceVersion=*
		GET configmaps
		200 ConfigMapList items=[]
		DELETE configmaps
		200 ConfigMapList items=[]`},
	{"a label selector", `
		POST configmaps {"metadata":{"name":"a","labels":{"g":"1"}}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b","labels":{"g":"2"}}}
		201 ConfigMap
		DELETE configmaps?labelSelector=g%3D1
		200 ConfigMapList items.0.metadata.name=a items.1=
		GET configmaps
		200 ConfigMapList items.0.metadata.name=b items.1=`},
	{"a field selector", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps?fieldSelector=metadata.name%3Db
		200 ConfigMapList items.0.metadata.name=b items.1=
		DELETE configmaps?fieldSelector=metadata.name!%3Da
		200 ConfigMapList items=[]
		GET configmaps
		200 ConfigMapList items.0.metadata.name=a items.1=`},
	{"limit and continue delete page by page", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"c"}}
		201 ConfigMap
		DELETE configmaps?limit=2
		200 ConfigMapList items.1.metadata.name=b items.2= metadata.remainingItemCount=1 next:=metadata.continue
		GET configmaps
		200 ConfigMapList items.0.metadata.name=c items.1=
		DELETE configmaps?limit=2&continue=${next}
		200 ConfigMapList items.0.metadata.name=c items.1= metadata.continue=
		GET configmaps
		200 ConfigMapList items=[]`},
	{"finalizers hold the objects of a collection", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps
		200 ConfigMapList items.0.metadata.name=a items.0.metadata.deletionTimestamp=
		GET configmaps/a
		200 ConfigMap metadata.deletionTimestamp=* v:=metadata.resourceVersion
		DELETE configmaps
		200 ConfigMapList items.0.metadata.resourceVersion=${v}
		GET configmaps/a
		200 ConfigMap metadata.resourceVersion=${v}`},
	{"the options apply to each object", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps {"propagationPolicy":"Orphan"}
		200 ConfigMapList
		GET configmaps
		200 ConfigMapList items.0.metadata.finalizers=["orphan"] items.1.metadata.finalizers=["orphan"]`},
	{"preconditions apply to each object; the first one that fails is the answer", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap uid:=metadata.uid
		POST configmaps {"metadata":{"name":"b"}}
		201 ConfigMap
		DELETE configmaps {"preconditions":{"uid":"x"}}
		409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${uid}). The object might have been deleted and then recreated`},
	{"pods are deleted gracefully", `
		POST pods ` + onNode + `
		201 Pod
		DELETE pods?gracePeriodSeconds=2
		200 PodList items.0.metadata.deletionTimestamp=
		GET pods/a
		200 Pod metadata.deletionGracePeriodSeconds=2
		DELETE pods?gracePeriodSeconds=0
		200 PodList items.0.metadata.deletionGracePeriodSeconds=2
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a dry run deletes nothing", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps?dryRun=All
		200 ConfigMapList items.0.metadata.name=a
		DELETE configmaps {"dryRun":["All"]}
		200 ConfigMapList items.0.metadata.name=a
		GET configmaps/a
		200 ConfigMap`},
	{"invalid options and selectors", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps?propagationPolicy=Later
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Later": supported values: "Foreground", "Background", "Orphan", "nil"
		DELETE configmaps?propagationPolicy=Orphan&orphanDependents=true
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set
		DELETE configmaps {
		400 BadRequest: couldn't get version/kind; json parse error: unexpected end of JSON input
		DELETE configmaps?resourceVersionMatch=Exact
		422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
		DELETE configmaps?sendInitialEvents=true
		422 Invalid: ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list
		DELETE configmaps?continue=bad
		400 BadRequest: invalid continue token: continue key is not valid: invalid character 'm' looking for beginning of value
		GET configmaps/a
		200 ConfigMap`},
	{"a collection in all namespaces cannot be deleted", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE /api/v1/configmaps
		405 MethodNotAllowed: the server does not allow this method on the requested resource
		DELETE /api/v1/watch/namespaces/NS/configmaps
		405 MethodNotAllowed: the server does not allow this method on the requested resource
		GET configmaps/a
		200 ConfigMap`},
}
