package admit_test

import "testing"

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

const (
	ignore   = `,"failurePolicy":"Ignore"`
	ifNeeded = `,"reinvocationPolicy":"IfNeeded"`
)

// TestWebhooks has what kube-apiserver answers, and asks webhooks, in the same place.
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
func TestWebhooks(t *testing.T) {
	onEachDialect(t, func(t *testing.T, w *webhooks) {
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
				{[]hook{{answer: hang, more: `,"timeoutSeconds":1`}}, "POST " + maps, cm("n", ""), `500 Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "URL/0?timeout=1s": context deadline exceeded`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
				{[]hook{{answer: hang, more: ignore}}, "POST " + maps + "?timeout=1s", cm("n", ""), `504 Timeout: request did not complete within the allotted timeout`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
				{[]hook{{mutating: true, answer: hang, more: ignore + `,"timeoutSeconds":1`}}, "POST " + maps, cm("n", ""), `201`, "a CREATE v1/configmaps n new=v1/ConfigMap"},
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
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				w.t = t
				w.play(row.steps)
			})
		}
	})
}
