package admission_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/servertest"
)

const (
	maps        = "/api/v1/namespaces/default/configmaps"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	scalers     = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
)

func cm(name, more string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}` + more + `}`
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
	"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

const scaler = `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,
	"targetCPUUtilizationPercentage":50,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`

const accessReview = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`

const (
	ignore   = `,"failurePolicy":"Ignore"`
	ifNeeded = `,"reinvocationPolicy":"IfNeeded"`
)

// TestWebhooks has what kube-apiserver answers, and asks webhooks, in the same place.
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
func TestWebhooks(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, w *webhooks) {
		for _, row := range []struct {
			name  string
			steps []step
		}{
			{"every verb that writes is asked about", []step{
				{[]hook{{answer: allow}}, "POST " + maps, cm("a", `,"data":{"a":"b"}`), "201", "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{nil, "PUT " + maps + "/a", cm("a", `,"data":{"a":"c"}`), "200 data/a=c", "a UPDATE v1/configmaps a new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "PUT " + maps + "/a", cm("a", `,"data":{"a":"c"}`), "200 data/a=c", "a UPDATE v1/configmaps a new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "MERGE " + maps + "/a", `{"data":{"a":"d"}}`, "200 data/a=d", "a UPDATE v1/configmaps a new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/b?fieldManager=m", cm("b", ""), "201", "a CREATE v1/configmaps b new=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/b?fieldManager=m", cm("b", `,"data":{"q":"r"}`), "200 data/q=r", "a UPDATE v1/configmaps b new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/b?fieldManager=m", cm("b", `,"data":{"q":"r"}`), "200", "a UPDATE v1/configmaps b new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/b?fieldManager=m", cm("b", `,"data":{"q":"r"}`), "200", "a UPDATE v1/configmaps b new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "POST " + maps + "?dryRun=All", cm("c", ""), "201", "a CREATE v1/configmaps c new=v1/ConfigMap dry"},
				{nil, "DELETE " + maps + "/a", "", "200 status=Success", "a DELETE v1/configmaps a old=v1/ConfigMap"},
				{nil, "DELETE " + maps + "/a", "", `404 configmaps "a" not found`, ""},
				{nil, "DELETE " + maps, "", "200", "a DELETE v1/configmaps  old=v1/ConfigMap"},
				{nil, "GET " + maps, "", "200 items/#=0", ""},
			}},
			{"a refusal", []step{
				{[]hook{{answer: deny("")}}, "POST " + maps, cm("a", ""), `400 admission webhook "a.example.com" denied the request without explanation`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{answer: deny(`{"message":"no"}`)}}, "POST " + maps, cm("a", ""), `400 admission webhook "a.example.com" denied the request: no`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{answer: deny(`{"code":409,"reason":"Conflict","message":"no"}`)}}, "POST " + maps, cm("a", ""), `409 admission webhook "a.example.com" denied the request: no`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{answer: deny(`{"code":200,"message":"no"}`)}}, "POST " + maps, cm("a", ""), `400 admission webhook "a.example.com" denied the request: no`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{answer: deny(`{"reason":"Because"}`)}}, "POST " + maps, cm("a", ""), `400 admission webhook "a.example.com" denied the request: Because`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{mutating: true, answer: allow}, {answer: deny(""), more: ignore}}, "APPLY " + maps + "/a?fieldManager=m&dryRun=All", cm("a", ""), `400 admission webhook "b.example.com" denied the request without explanation`,
					"a CREATE v1/configmaps a new=v1/ConfigMap dry; b CREATE v1/configmaps a new=v1/ConfigMap dry"},
				{nil, "GET " + maps + "/a", "", `404 configmaps "a" not found`, ""},
			}},
			{"a refusal of a deletion", []step{
				{[]hook{{answer: deny(""), rule: "DELETE /v1/configmaps"}}, "POST " + maps, cm("kept", ""), "201", ""},
				{nil, "DELETE " + maps + "/kept", "", `400 admission webhook "a.example.com" denied the request without explanation`, "a DELETE v1/configmaps kept old=v1/ConfigMap"},
				{nil, "DELETE " + maps, "", `400 admission webhook "a.example.com" denied the request without explanation`, "a DELETE v1/configmaps  old=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps + "/kept", "", "200", ""},
			}},
			{"a mutation", []step{
				{[]hook{{mutating: true, answer: patch(`{"op":"add","path":"/data","value":{"m":"1"}}`)}}, "POST " + maps, cm("m", ""), "201 data/m=1", "a CREATE v1/configmaps m new=v1/ConfigMap"},
				{nil, "MERGE " + maps + "/m", `{"data":{"m":"2","n":"2"}}`, "200 data/m=1 data/n=", "a UPDATE v1/configmaps m new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/m2?fieldManager=m", cm("m2", ""), "201 data/m=1", "a CREATE v1/configmaps m2 new=v1/ConfigMap"},
				{nil, "DELETE " + maps + "/m", "", `500 Internal error occurred: admission webhook "a.example.com" attempted to modify the object, which is not supported for this operation`, "a DELETE v1/configmaps m old=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps, "", "200", ""},
			}},
			{"an apply that a mutation undoes is done anew each time", []step{
				{[]hook{{mutating: true, rule: "UPDATE /v1/configmaps", answer: patch(`{"op":"replace","path":"/data","value":{}}`)}}, "APPLY " + maps + "/m?fieldManager=m", cm("m", ""), "201", ""},
				{nil, "APPLY " + maps + "/m?fieldManager=m", cm("m", `,"data":{"a":"b"}`), "200 data/a=", "a UPDATE v1/configmaps m new=v1/ConfigMap old=v1/ConfigMap"},
				{nil, "APPLY " + maps + "/m?fieldManager=m", cm("m", `,"data":{"a":"b"}`), "200 data/a=", "a UPDATE v1/configmaps m new=v1/ConfigMap old=v1/ConfigMap"},
				{[]hook{}, "APPLY " + maps + "/m?fieldManager=m", cm("m", `,"data":{"a":"b"}`), "200 data/a=b", ""},
				{nil, "APPLY " + maps + "/m?fieldManager=m", cm("m", `,"data":{"a":"b"}`), "200 data/a=b", ""},
				{[]hook{{mutating: true, answer: patch(`{"op":"add","path":"/data/m","value":"1"}`)}}, "APPLY " + maps + "/m?fieldManager=m", cm("m", `,"data":{"a":"b"}`), "200 data/a=b data/m=1", "a UPDATE v1/configmaps m new=v1/ConfigMap old=v1/ConfigMap; a UPDATE v1/configmaps m new=v1/ConfigMap old=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps, "", "200", ""},
			}},
			{"a mutation that cannot be", []step{
				{[]hook{{mutating: true, answer: patch(`{"op":"remove","path":"/nope"}`)}}, "POST " + maps, cm("a", ""), "500 Internal error occurred: error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value", "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{mutating: true, answer: patch(`{"op":"add","path":"/metadata/name","value":"UPPER"}`)}}, "POST " + maps, cm("a", ""), `422 ConfigMap "UPPER" is invalid: metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
				{[]hook{{answer: patch(`{"op":"add","path":"/data","value":{}}`)}}, "POST " + maps, cm("a", ""), `500 Internal error occurred: failed calling webhook "a.example.com": received invalid webhook response: validating webhook may not return response.patch`, "a CREATE v1/configmaps a new=v1/ConfigMap"},
			}},
			{"mutating webhooks come in turn, and again if they want to", []step{
				{[]hook{
					{mutating: true, more: ifNeeded, answer: patch(`{"op":"add","path":"/data/one","value":"1"}`)},
					{mutating: true, answer: patch(`{"op":"add","path":"/data/two","value":"2"}`)},
					{answer: allow},
				}, "POST " + maps, cm("r", `,"data":{"zero":"0"}`), "201 data/one=1 data/two=2", "a CREATE v1/configmaps r new=v1/ConfigMap; b CREATE v1/configmaps r new=v1/ConfigMap; a CREATE v1/configmaps r new=v1/ConfigMap; c CREATE v1/configmaps r new=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps + "/r", "", "200", ""},
			}},
			{"garbage", []step{
				{[]hook{{answer: say(200, "{garbage")}}, "POST " + maps, cm("g", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: couldn't get version/kind; json parse error: invalid character 'g' looking for beginning of object key string`, "a CREATE v1/configmaps g new=v1/ConfigMap"},
				{[]hook{{answer: say(500, "oh no")}}, "POST " + maps, cm("g", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: an error on the server ("oh no") has prevented the request from succeeding`, "a CREATE v1/configmaps g new=v1/ConfigMap"},
				{[]hook{{answer: say(200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`)}}, "POST " + maps, cm("g", ""), `500 Internal error occurred: failed calling webhook "a.example.com": received invalid webhook response: webhook response was absent`, "a CREATE v1/configmaps g new=v1/ConfigMap"},
				{[]hook{{answer: flood}}, "POST " + maps, cm("g", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: unexpected error when reading response body. Please retry. Original error: the answer of the webhook is longer than 16 MiB`, "a CREATE v1/configmaps g new=v1/ConfigMap"},
				{[]hook{{mutating: true, more: ignore, answer: say(500, "oh no")}, {more: ignore, answer: say(200, "<html>")}}, "POST " + maps, cm("g", ""), "201", "a CREATE v1/configmaps g new=v1/ConfigMap; b CREATE v1/configmaps g new=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps + "/g", "", "200", ""},
			}},
			{"nobody there", []step{
				{[]hook{{client: `{"service":{"namespace":"default","name":"none"},"caBundle":"CA"}`}}, "POST " + maps, cm("n", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://none.default.svc:443/?timeout=10s": service "none" not found`, ""},
				{[]hook{{answer: w.hang, more: `,"timeoutSeconds":4`}}, "POST " + maps, cm("n", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "URL/0?timeout=4s": context deadline exceeded`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
				{[]hook{{answer: w.hang, more: ignore}}, "POST " + maps + "?timeout=4s", cm("n", ""), `504 Timeout: request did not complete within the allotted timeout`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
				{[]hook{{mutating: true, answer: w.hang, more: ignore + `,"timeoutSeconds":4`}}, "POST " + maps, cm("n", ""), `201`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
				{[]hook{}, "DELETE " + maps + "/n", "", "200", ""},
			}},
			{"selectors and conditions", []step{
				{[]hook{{answer: deny(""), more: `,"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}`}}, "POST " + maps + "?dryRun=All", cm("s", ""), "201", ""},
				{[]hook{{answer: deny(""), more: `,"objectSelector":{"matchLabels":{"a":"b"}}`}}, "POST " + maps + "?dryRun=All", cm("s", ""), "201", ""},
				{nil, "POST " + maps + "?dryRun=All", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s","labels":{"a":"b"}}}`, `400 admission webhook "a.example.com" denied the request without explanation`, "a CREATE v1/configmaps s new=v1/ConfigMap dry"},
				{[]hook{{answer: deny(""), more: `,"matchConditions":[{"name":"c","expression":"request.name == 'x'"}]`}}, "POST " + maps + "?dryRun=All", cm("s", ""), "201", ""},
				{[]hook{{answer: deny(""), more: `,"matchConditions":[{"name":"c","expression":"object.data.a == 'b' && authorizer.group('').resource('pods').check('get').allowed()"}]`}}, "POST " + maps + "?dryRun=All", cm("s", `,"data":{"a":"b"}`), `400 admission webhook "a.example.com" denied the request without explanation`, "a CREATE v1/configmaps s new=v1/ConfigMap dry"},
				{nil, "POST " + maps + "?dryRun=All", cm("s", ""), `403 configmaps "s" is forbidden: expression 'object.data.a == 'b' && authorizer.group('').resource('pods').check('get').allowed()' resulted in error: no such key: data`, ""},
			}},
			{"subresources", []step{
				{[]hook{{answer: allow, rule: "* apps/v1/*/*"}}, "POST " + deployments, deployment, "201", "a CREATE v1/deployments d new=apps/v1/Deployment"},
				{nil, "MERGE " + deployments + "/d/status", `{"status":{"replicas":1}}`, "200", "a UPDATE v1/deployments/status d new=apps/v1/Deployment old=apps/v1/Deployment"},
				{nil, "MERGE " + deployments + "/d/scale", `{"spec":{"replicas":5}}`, "200 spec/replicas=5", "a UPDATE v1/deployments/scale d new=autoscaling/v1/Scale old=autoscaling/v1/Scale"},
				{[]hook{{mutating: true, rule: "* apps/v1/deployments/scale", answer: patch(`{"op":"replace","path":"/spec/replicas","value":9}`)}}, "MERGE " + deployments + "/d/scale", `{"spec":{"replicas":6}}`, "200 spec/replicas=9", "a UPDATE v1/deployments/scale d new=autoscaling/v1/Scale old=autoscaling/v1/Scale"},
				{[]hook{{mutating: true, rule: "* apps/v1/deployments", answer: patch(`{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"side","image":"car"}}`)}}, "MERGE " + deployments + "/d", `{"metadata":{"labels":{"q":"r"}}}`,
					"200 spec/template/spec/containers/1/imagePullPolicy=Always", "a UPDATE v1/deployments d new=apps/v1/Deployment old=apps/v1/Deployment"},
				{[]hook{}, "DELETE " + deployments + "/d?propagationPolicy=Background", "", "200", ""},
			}},
			{"other versions of the same objects", []step{
				{[]hook{{mutating: true, rule: "* autoscaling/v2/horizontalpodautoscalers", answer: patch(`{"op":"add","path":"/spec/maxReplicas","value":7}`)}}, "POST " + scalers, scaler, "201 apiVersion=autoscaling/v1 spec/maxReplicas=7 spec/targetCPUUtilizationPercentage=50", "a CREATE v2/horizontalpodautoscalers h new=autoscaling/v2/HorizontalPodAutoscaler for v1"},
				{[]hook{{answer: allow, rule: "* autoscaling/v2/horizontalpodautoscalers", more: `,"matchPolicy":"Exact"`}}, "PUT " + scalers + "/h", scaler, "200 spec/maxReplicas=3", ""},
				{[]hook{{answer: allow, rule: "* events.k8s.io/v1/events"}}, "POST /api/v1/namespaces/default/events?dryRun=All", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"reason":"r","type":"Normal"}`, "201", "a CREATE v1/events e new=events.k8s.io/v1/Event dry"},
				{[]hook{}, "DELETE " + scalers + "/h", "", "200", ""},
			}},
			{"namespaces, and what is never asked about", []step{
				{[]hook{{answer: allow, rule: "* */*/*", more: `,"objectSelector":{"matchLabels":{"ask":"me"}}`}}, "POST /api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"ask":"me"}}}`, "201", "a CREATE v1/namespaces n new=v1/Namespace"},
				{nil, "DELETE /api/v1/namespaces/n", "", "200", "a DELETE v1/namespaces n old=v1/Namespace"},
				{nil, "POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"other","labels":{"ask":"me"}},"webhooks":[]}`, "201", ""},
				{[]hook{{answer: deny(""), rule: "* */*/*"}}, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accessReview, "201 status/allowed=true", ""},
				{nil, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`, "201", ""},
				{[]hook{{answer: deny(""), rule: "* authorization.k8s.io/v1/selfsubjectaccessreviews"}}, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accessReview, "201 status/allowed=true", ""},
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				w.t = t
				w.play(row.steps)
			})
		}
	})
}

// things is a definition with two versions, and with both subresources.
func things() string {
	version := func(name, storage string) string {
		return `{"name":"` + name + `","served":true,"storage":` + storage + `,
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
			"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{"size":{"type":"integer"},"replicas":{"type":"integer"},"color":{"type":"string","default":"red"}}},
			"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}`
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
		"scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[` + version("v1", "true") + `,` + version("v2", "false") + `]}}`
}

func thing(name, spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
}

// TestWebhooksOfCustomResources is TestWebhooks for resources that a definition makes.
func TestWebhooksOfCustomResources(t *testing.T) {
	const at = "/apis/example.com/v1/namespaces/default/things"
	const update = " new=example.com/v1/Thing old=example.com/v1/Thing"
	aloneAndShared(t, func(t *testing.T, w *webhooks) {
		if code, body, _ := w.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", things()); code != http.StatusCreated {
			t.Fatal(body)
		}
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if code, body, _ := w.send("GET", at, ""); code == http.StatusOK {
				break
			} else if time.Since(begun) > 2*time.Minute {
				t.Fatal("things are not served: ", body)
			}
		}
		for _, row := range []struct {
			name  string
			steps []step
		}{
			{"every verb that writes is asked about", []step{
				{[]hook{{answer: allow, rule: "* example.com/v1/*/*"}}, "POST " + at, thing("t", `"size":1`), "201 spec/color=red", "a CREATE v1/things t new=example.com/v1/Thing"},
				{nil, "MERGE " + at + "/t", `{"spec":{"size":2}}`, "200 spec/size=2", "a UPDATE v1/things t" + update},
				{nil, "APPLY " + at + "/t?fieldManager=m", thing("t", `"size":2`), "200", "a UPDATE v1/things t" + update},
				{nil, "APPLY " + at + "/t?fieldManager=m", thing("t", `"size":2`), "200", "a UPDATE v1/things t" + update},
				{nil, "MERGE " + at + "/t/status", `{"status":{"replicas":3}}`, "200 status/replicas=3", "a UPDATE v1/things/status t" + update},
				{nil, "MERGE " + at + "/t/scale", `{"spec":{"replicas":3}}`, "200 spec/replicas=3", "a UPDATE v1/things/scale t new=autoscaling/v1/Scale old=autoscaling/v1/Scale"},
				{nil, "DELETE " + at, "", "200", "a DELETE v1/things  old=example.com/v1/Thing"},
			}},
			{"a mutation is defaulted, pruned and validated", []step{
				{[]hook{{mutating: true, rule: "* example.com/v1/things", answer: patch(`{"op":"add","path":"/spec/size","value":9}`, `{"op":"add","path":"/spec/nope","value":9}`, `{"op":"remove","path":"/spec/color"}`)}},
					"POST " + at, thing("t", `"color":"blue"`), "201 spec/size=9 spec/nope= spec/color=red", "a CREATE v1/things t new=example.com/v1/Thing"},
				{nil, "GET " + at + "/t", "", "200 spec/size=9 spec/nope= spec/color=red", ""},
				{[]hook{{mutating: true, rule: "* example.com/v1/things", answer: patch(`{"op":"add","path":"/spec/size","value":"big"}`)}},
					"MERGE " + at + "/t", `{"spec":{"size":1}}`, `422 Thing.example.com "t" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`, "a UPDATE v1/things t" + update},
				{[]hook{}, "DELETE " + at + "/t", "", "200", ""},
			}},
			{"a webhook sees the version that it asks for", []step{
				{[]hook{{answer: allow, rule: "* example.com/v2/things"}, {mutating: true, rule: "* example.com/v2/things", answer: patch(`{"op":"add","path":"/spec/size","value":5}`)}},
					"POST " + at, thing("t", `"size":1`), "201 apiVersion=example.com/v1 spec/size=5", "b CREATE v2/things t new=example.com/v2/Thing for v1; a CREATE v2/things t new=example.com/v2/Thing for v1"},
				{[]hook{{answer: deny(""), rule: "* example.com/v2/things", more: `,"matchPolicy":"Exact"`}}, "MERGE " + at + "/t", `{"spec":{"size":1}}`, "200 spec/size=1", ""},
			}},
			{"a refusal", []step{
				{[]hook{{answer: deny(`{"message":"no"}`), rule: "* example.com/v1/things"}}, "POST " + at, thing("u", ""), `400 admission webhook "a.example.com" denied the request: no`, "a CREATE v1/things u new=example.com/v1/Thing"},
				{nil, "DELETE " + at + "/t", "", `400 admission webhook "a.example.com" denied the request: no`, "a DELETE v1/things t old=example.com/v1/Thing"},
				{[]hook{{answer: deny(""), rule: "* example.com/v1/things", more: `,"matchConditions":[{"name":"c","expression":"object.spec.size > 2"}]`}}, "POST " + at + "?dryRun=All", thing("u", `"size":1`), "201", ""},
				{nil, "POST " + at, thing("u", ""), `403 things.example.com "u" is forbidden: expression 'object.spec.size > 2' resulted in error: no such key: size`, ""},
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				w.t = t
				w.play(row.steps)
			})
		}
	})
}

// Warnings of webhooks are the client's.
func TestWebhookWarnings(t *testing.T) {
	w := newWebhooks(t, "")
	warn := func(texts ...string) answer {
		return respond(func(r *admissionv1.AdmissionResponse) { r.Warnings = texts })
	}
	w.configure([]hook{{mutating: true, answer: warn("one")}, {answer: warn("two", "one")}})
	for range 3 {
		_, body, head := w.send("APPLY", maps+"/w?fieldManager=m", cm("w", `,"data":{"a":"b"}`))
		if got := strings.Join(head["Warning"], "; "); got != `299 - "one"; 299 - "two"` {
			t.Errorf("got warnings %s with %s", got, body)
		}
	}
}

// A webhook that is named by its Service is called where the Service leads, and has to have
// a certificate for the name that the Service has in a cluster.
func TestWebhookOfService(t *testing.T) {
	w := newWebhooks(t, "")
	authority, key, err := cert.GenerateSelfSignedCertKey("hook.default.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(w)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	client := fmt.Sprintf(`{"service":{"namespace":"default","name":"hook","port":%d,"path":"/0"},"caBundle":"`, port)
	trusted := client + base64.StdEncoding.EncodeToString(authority) + `"}`
	w.play([]step{
		{nil, "POST /api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"hook"},"spec":{"type":"ExternalName","externalName":"127.0.0.1"}}`, "201", ""},
		{[]hook{{client: trusted, answer: allow}}, "POST " + maps + "?dryRun=All", cm("a", ""), "201", "a CREATE v1/configmaps a new=v1/ConfigMap dry"},
		{[]hook{{client: client + `CA"}`, more: `,"failurePolicy":"Ignore"`, answer: deny("")}}, "POST " + maps + "?dryRun=All", cm("a", ""), "201", ""},
	})
}

// A server starts although a webhook that has a say in everything is away, and makes what
// every cluster has.
func TestStartWithoutWebhook(t *testing.T) {
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	run := func() (*servertest.Server, kubernetes.Interface) {
		srv, err := servertest.Run(t.Context(), servertest.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return srv, kubernetes.NewForConfigOrDie(srv.Config)
	}
	srv, client := run()
	if err := client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	url, none := "https://127.0.0.1:1/", v1.SideEffectClassNone
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &v1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "away"},
		Webhooks: []v1.ValidatingWebhook{{
			Name: "away.example.com", ClientConfig: v1.WebhookClientConfig{URL: &url}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []v1.RuleWithOperations{{Operations: []v1.OperationType{"*"}, Rule: v1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv, client = run()
	defer srv.Close()
	if _, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "away.example.com"`) {
		t.Errorf("got %v", err)
	}
}
