package rest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestSubresources has objects that are served in several groups and versions, and subresources.
// The answers are kube-apiserver's.
func TestSubresources(t *testing.T) {
	playEach(t, awayOnPostgres, slices.Concat(subresourceRows, scaleRows))
}

// csr asks for a certificate with the subject O=dev, CN=jane.
const csr = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUUrNU1ya3Rwb3NYbTBGQUtVcDk4c3BEK04waDBqZjhMWnIrTzgvaGxVCkU5Qi9JSWpvMzMvRlMxVlhRTlQrTk5lby9TRXVVVFhFbjdCaHJHUWc2VTgxRTZBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUURWMmdDS1E4WWhqdUUxaFd6SlZmTm1XOVcza1JPNEx0dVcxNlpZR05UUStnSWdSZDdyM2t4egpSM3RXeWJmQnB2V2VlaXAxWkJKYS9uKzFGRE1LMzNmbEk1az0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="

var subresourceRows = []namedScript{
	{"an event of the core group", `
		POST events {"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"NS"},"reason":"R","message":"m","type":"Normal","source":{"component":"c"},"count":3,"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z"}
		201 Event apiVersion=v1 rv:=metadata.resourceVersion uid:=metadata.uid
		GET /apis/events.k8s.io/v1/namespaces/NS/events/e
		200 Event apiVersion=events.k8s.io/v1 metadata.resourceVersion=${rv} note=m regarding.name=p deprecatedCount=3 deprecatedSource.component=c eventTime=
		PATCH events/e {"count":4}
		200 Event count=4
		PATCH /apis/events.k8s.io/v1/namespaces/NS/events/e {"deprecatedCount":5}
		422 Invalid: Event "e" is invalid: count: Invalid value: 5: field is immutable
		PATCH /apis/events.k8s.io/v1/namespaces/NS/events/e {"note":"other"}
		422 Invalid: Event "e" is invalid: message: Invalid value: "other": field is immutable
		PATCH /apis/events.k8s.io/v1/namespaces/NS/events/e {"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}}
		200 Event apiVersion=events.k8s.io/v1 series.count=2 metadata.uid=${uid}
		WATCH /apis/events.k8s.io/v1/namespaces/NS/events
		ADDED apiVersion=events.k8s.io/v1 note=m deprecatedCount=3
		MODIFIED deprecatedCount=4
		MODIFIED series.count=2
		DELETE /apis/events.k8s.io/v1/namespaces/NS/events/e
		200 Status status=Success
		GET events/e
		404 NotFound: events "e" not found`},
	{"an event of events.k8s.io", `
		POST /apis/events.k8s.io/v1/namespaces/NS/events {"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R","regarding":{"kind":"Pod","name":"p","namespace":"NS"},"note":"n","type":"Normal"}
		201 Event apiVersion=events.k8s.io/v1
		GET events/e
		200 Event apiVersion=v1 message=n involvedObject.name=p reportingComponent=example.com/c eventTime=2026-01-01T00:00:00.000000Z
		GET events?fieldSelector=involvedObject.name%3Dp,reason%3DR
		200 EventList items.0.metadata.name=e
		GET events?fieldSelector=source%3Dexample.com/c
		200 EventList items.0.metadata.name=e
		GET events?fieldSelector=regarding.name%3Dp
		400 BadRequest: field label not supported: regarding.name
		GET /apis/events.k8s.io/v1/namespaces/NS/events?fieldSelector=regarding.name%3Dp,type%3DNormal
		200 EventList apiVersion=events.k8s.io/v1 items.0.regarding.name=p
		GET /apis/events.k8s.io/v1/namespaces/NS/events?fieldSelector=regarding.name%3Dp,type%3DWarning
		200 EventList items.0=
		GET /apis/events.k8s.io/v1/namespaces/NS/events?fieldSelector=reportingController%3Dexample.com/c
		200 EventList items.0.metadata.name=e
		GET /apis/events.k8s.io/v1/namespaces/NS/events?fieldSelector=involvedObject.name%3Dp
		400 BadRequest: field label not supported: involvedObject.name
		WATCH events
		ADDED apiVersion=v1 message=n
		DELETE events/e
		200 Status status=Success
		GET /apis/events.k8s.io/v1/namespaces/NS/events/e
		404 NotFound: events.events.k8s.io "e" not found`},
	{"each group has validation rules of its own for events", `
		POST /apis/events.k8s.io/v1/namespaces/NS/events {"metadata":{"name":"e"},"reason":"R","regarding":{"kind":"Pod","name":"p","namespace":"NS"}}
		422 Invalid: Event "e" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]
		POST events {"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"other"}}
		422 Invalid: Event "e" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace`},
	{"an autoscaler of v2", `
		POST /apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers {"metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"a","apiVersion":"apps/v1"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}]}}
		201 HorizontalPodAutoscaler apiVersion=autoscaling/v2
		GET /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers/h
		200 HorizontalPodAutoscaler apiVersion=autoscaling/v1 spec.targetCPUUtilizationPercentage=50 uid:=metadata.uid
		PUT /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers/h {"metadata":{"name":"h"},"spec":{"maxReplicas":4,"minReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"a","apiVersion":"apps/v1"},"targetCPUUtilizationPercentage":60}}
		200 HorizontalPodAutoscaler metadata.uid=${uid}
		PATCH /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers/h/status {"status":{"currentReplicas":2,"desiredReplicas":3,"currentCPUUtilizationPercentage":44}}
		200 HorizontalPodAutoscaler status.currentCPUUtilizationPercentage=44
		GET /apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers/h
		200 HorizontalPodAutoscaler metadata.uid=${uid} spec.minReplicas=2 spec.metrics.0.resource.target.averageUtilization=60 spec.metrics.1= status.currentMetrics.0.resource.current.averageUtilization=44
		WATCH /apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers
		ADDED spec.metrics.1.resource.name=memory
		MODIFIED spec.metrics.0.resource.target.averageUtilization=60
		MODIFIED status.desiredReplicas=3
		DELETE /apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers/h
		200 Status status=Success
		GET /apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers/h
		404 NotFound: horizontalpodautoscalers.autoscaling "h" not found`},
	{"the subresources of a namespace", `
		POST /api/v1/namespaces {"metadata":{"name":"NS-n"},"spec":{"finalizers":["example.com/x","kubernetes"]}}
		201 Namespace status.phase=Active
		GET /api/v1/namespaces/NS-n/finalize
		405 MethodNotAllowed: the server does not allow this method on the requested resource
		PATCH /api/v1/namespaces/NS-n/finalize {}
		405 MethodNotAllowed: the server does not allow this method on the requested resource
		PATCH /api/v1/namespaces/NS-n/status {"status":{"conditions":[{"type":"A","status":"True"}]},"spec":{"finalizers":[]}}
		200 Namespace spec.finalizers.1=kubernetes status.conditions.0.type=A
		PUT /api/v1/namespaces/NS-n/status {"metadata":{"name":"NS-n"},"status":{"phase":"Terminating"}}
		422 Invalid: Namespace "NS-n" is invalid: status.Phase: Invalid value: "Terminating": may only be 'Active' if ` + "`deletionTimestamp`" + ` is empty
		PUT /api/v1/namespaces/NS-n {"metadata":{"name":"NS-n"},"spec":{"finalizers":["example.com/y"]}}
		200 Namespace spec.finalizers.0=example.com/x
		PUT /api/v1/namespaces/NS-n/finalize {"metadata":{"name":"NS-m"},"spec":{}}
		400 BadRequest: the name of the object (NS-m) does not match the name on the URL (NS-n)
		PUT /api/v1/namespaces/NS-n/finalize {"metadata":{"name":"NS-n"},"spec":{"finalizers":["nonsense"]}}
		422 Invalid: Namespace "NS-n" is invalid: spec.finalizers[0]: Invalid value: "nonsense": name is neither a standard finalizer name nor is it fully qualified
		PUT /api/v1/namespaces/NS-n/finalize {"metadata":{"name":"NS-n"},"spec":{"finalizers":["example.com/x"]}}
		200 Namespace spec.finalizers.0=example.com/x spec.finalizers.1=
		PUT /api/v1/namespaces/NS-n/finalize?dryRun=All {"metadata":{"name":"NS-n"},"spec":{"finalizers":[]}}
		200 Namespace spec.finalizers=
		DELETE /api/v1/namespaces/NS-n
		200 Namespace status.phase=Terminating
		PUT /api/v1/namespaces/NS-n/finalize {"metadata":{"name":"NS-n"},"spec":{"finalizers":[]}}
		200 Namespace status.phase=Terminating spec.finalizers=
		GET /api/v1/namespaces/NS-n
		404 NotFound: namespaces "NS-n" not found
		PUT /api/v1/namespaces/NS-n/finalize {"metadata":{"name":"NS-n"},"spec":{"finalizers":[]}}
		404 NotFound: namespaces "NS-n" not found`},
	{"the subresources of a CertificateSigningRequest", `
		POST /apis/certificates.k8s.io/v1/certificatesigningrequests {"metadata":{"name":"NS"},"spec":{"request":"` + csr + `","signerName":"example.com/s","usages":["client auth"],"username":"fake","groups":["fake"]},"status":{"certificate":"eA=="}}
		201 CertificateSigningRequest spec.username=tester spec.groups.0=system:masters status.certificate=
		PATCH /apis/certificates.k8s.io/v1/certificatesigningrequests/NS {"spec":{"signerName":"example.com/other"},"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]},"metadata":{"labels":{"a":"b"}}}
		200 CertificateSigningRequest metadata.labels.a=b spec.signerName=example.com/s status.conditions=
		PATCH /apis/certificates.k8s.io/v1/certificatesigningrequests/NS/status {"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}
		422 Invalid: CertificateSigningRequest.certificates.k8s.io "NS" is invalid: status.conditions: Forbidden: updates may not add a condition of type "Approved"
		PATCH /apis/certificates.k8s.io/v1/certificatesigningrequests/NS/approval {"status":{"certificate":"eA==","conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}
		200 CertificateSigningRequest status.conditions.0.type=Approved status.certificate=
		PATCH /apis/certificates.k8s.io/v1/certificatesigningrequests/NS/approval {"status":{"conditions":[]}}
		422 Invalid: CertificateSigningRequest.certificates.k8s.io "NS" is invalid: status.conditions: Forbidden: updates may not remove a condition of type "Approved"
		PATCH /apis/certificates.k8s.io/v1/certificatesigningrequests/NS/status {"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"},{"type":"Failed","status":"True","reason":"r","message":"m"}]}}
		200 CertificateSigningRequest status.conditions.1.type=Failed
		GET /apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dexample.com/s
		200 CertificateSigningRequestList items.0.metadata.labels.a=b
		DELETE /apis/certificates.k8s.io/v1/certificatesigningrequests/NS
		200 Status status=Success`},
}

// TestStatusAndScale writes a Deployment through its subresources.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#types-kinds
func TestStatusAndScale(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	deployments := "/apis/apps/v1/namespaces/default/deployments"
	body := `{"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c1","image":"i1"}]}}},"status":{"replicas":7}}`
	a := h.do("POST", deployments, body).want(201)
	if a.get("status", "replicas") != "" {
		t.Errorf("create kept a status: %s", a.body)
	}
	a = h.do("PUT", deployments+"/d/status", strings.Replace(body, `"replicas":2`, `"replicas":5`, 1)).want(200)
	if a.get("status", "replicas") != "7" || a.get("spec", "replicas") != "2" {
		t.Errorf("status update: %s", a.body)
	}
	a = h.do("GET", deployments+"/d/scale", "").want(200)
	if a.get("kind") != "Scale" || a.get("apiVersion") != "autoscaling/v1" || a.get("spec", "replicas") != "2" || a.get("status", "selector") != "a=b" || a.get("status", "replicas") != "7" {
		t.Errorf("scale: %s", a.body)
	}
	a = h.do("GET", deployments+"/d/scale", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").want(200)
	if a.get("kind") != "Table" || a.get("columnDefinitions", "1", "name") != "Desired" || a.get("rows", "0", "cells", "1") != "2" || a.get("rows", "0", "object", "metadata", "name") != "d" {
		t.Errorf("table of a scale: %s", a.body)
	}
	a = h.do("PATCH", deployments+"/d/scale", `{"spec":{"replicas":4}}`, "Content-Type", "application/merge-patch+json").want(200)
	if a.get("spec", "replicas") != "4" {
		t.Errorf("patched scale: %s", a.body)
	}
	scale := strings.Replace(a.body, `"replicas":4`, `"replicas":6`, 1)
	h.do("PUT", deployments+"/d/scale", scale).want(200)
	h.do("PUT", deployments+"/d/scale", scale).want(409) // its resourceVersion is used up
	a = h.do("GET", deployments+"/d", "").want(200)
	if a.get("spec", "replicas") != "6" || a.get("metadata", "generation") != "3" {
		t.Errorf("deployment after scaling: %s", a.body)
	}
	h.do("PATCH", deployments+"/d/scale", `{"spec":{"replicas":-4}}`, "Content-Type", "application/merge-patch+json").want(422)
}

// TestGroupsAndVersions reads an object in other versions and groups than it was written in.
func TestGroupsAndVersions(t *testing.T) {
	h := newHarness(t, rest.Options{})
	hpas := func(v string) string {
		return "/apis/autoscaling/" + v + "/namespaces/default/horizontalpodautoscalers"
	}
	h.do("POST", hpas("v1"), `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`).want(201)
	a := h.do("GET", hpas("v2")+"/h", "").want(200)
	if a.get("apiVersion") != "autoscaling/v2" || a.get("spec", "metrics", "0", "resource", "target", "averageUtilization") != "50" {
		t.Errorf("v2: %s", a.body)
	}
	a = h.do("GET", hpas("v1"), "").want(200)
	if a.get("apiVersion") != "autoscaling/v1" || a.get("items", "0", "spec", "targetCPUUtilizationPercentage") != "50" || a.get("items", "0", "kind") != "" {
		t.Errorf("v1 list: %s", a.body)
	}
	h.do("POST", "/apis/events.k8s.io/v1/namespaces/default/events", `{"metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"c.io/x","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}`).want(201)
	a = h.do("GET", "/api/v1/namespaces/default/events/e", "").want(200)
	if a.get("apiVersion") != "v1" || a.get("reportingComponent") != "c.io/x" {
		t.Errorf("core event: %s", a.body)
	}
}

// scaleRows are the scale subresource of a Deployment.
var scaleRows = []namedScript{
	{"scale has the object's identity and no more", `
		POST deployments ` + aDeployment + `
		201 Deployment uid:=metadata.uid
		GET deployments/a/scale
		200 Scale apiVersion=autoscaling/v1 metadata.name=a metadata.uid=${uid} spec.replicas=1 status.selector=a=b
		PUT deployments/a/scale {"metadata":{"name":"a"},"spec":{"replicas":5}}
		200 Scale spec.replicas=5
		GET deployments/a
		200 Deployment spec.replicas=5 metadata.generation=2
		PUT deployments/a/scale {"metadata":{"name":"a"},"spec":{"replicas":-1}}
		422 Invalid: Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
		PUT deployments/a/scale {"metadata":{"name":"b"},"spec":{"replicas":5}}
		400 BadRequest: the name of the object (b) does not match the name on the URL (a)
		PUT deployments/b/scale {"metadata":{"name":"b"},"spec":{"replicas":5}}
		404 NotFound: deployments.apps "b" not found`},
}
