package rest_test

import (
	"testing"
)

const sized = `{"metadata":{"name":"a"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"1"}}}]}}`

// podSubresourceRows are what kube-apiserver answers to writes of the subresources of a pod.
var podSubresourceRows = []namedScript{
	{"ephemeral containers", `
		POST pods ` + sized + `
		201 Pod
		PATCH pods/a/ephemeralcontainers {"metadata":{"labels":{"l":"m"}},"spec":{"nodeName":"n2","ephemeralContainers":[{"name":"e","image":"x"}]}}
		200 Pod spec.nodeName=n1 metadata.labels= spec.ephemeralContainers.0.name=e spec.ephemeralContainers.0.imagePullPolicy=Always metadata.generation=2
		GET pods/a/ephemeralcontainers
		200 Pod spec.ephemeralContainers.0.image=x
		PATCH pods/a/ephemeralcontainers?dryRun=All {"spec":{"ephemeralContainers":[{"name":"e","image":"x"},{"name":"f","image":"y"}]}}
		200 Pod spec.ephemeralContainers.1.name=f
		GET pods/a
		200 Pod spec.ephemeralContainers.0.name=e spec.ephemeralContainers.1=`},
	{"resize", `
		POST pods ` + sized + `
		201 Pod
		PATCH pods/a/resize {"spec":{"nodeName":"n2","containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"200m"},"limits":{"cpu":"1"}}}]}}
		200 Pod spec.nodeName=n1 spec.containers.0.image=i spec.containers.0.resources.requests.cpu=200m metadata.generation=2
		PATCH pods/a/resize {"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}}
		422 Invalid: Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
	{"status", `
		POST pods ` + sized + `
		201 Pod status.phase=Pending status.qosClass=Burstable
		PATCH pods/a/status {"metadata":{"labels":{"l":"m"}},"spec":{"nodeName":"n2"},"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}
		200 Pod spec.nodeName=n1 status.phase=Running status.podIP=10.0.0.1 metadata.generation=1
		PATCH pods/a {"status":{"phase":"Failed"}}
		200 Pod status.phase=Running
		PATCH pods/a/status {"status":{"qosClass":"Guaranteed"}}
		422 Invalid: Pod "a" is invalid: status.qosClass: Invalid value: "Guaranteed": field is immutable`},
}

func TestPodSubresources(t *testing.T) { playEach(t, awayOnOthers, podSubresourceRows) }
