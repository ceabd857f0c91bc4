package admit_test

import (
	"net/http"
	"testing"
	"time"
)

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
	onEachDialect(t, func(t *testing.T, w *webhooks) {
		if code, body, _ := w.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", things()); code != http.StatusCreated {
			t.Fatal(body)
		}
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if code, body, _ := w.send("GET", at, ""); code == http.StatusOK {
				break
			} else if time.Since(begun) > time.Minute {
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
