package rest_test

import (
	"fmt"
	"strings"
)

// The rows of TestApply: what https://kubernetes.io/docs/reference/using-api/server-side-apply/
// says, in its order and often its words. The codes, words and managed fields are those of
// kube-apiserver, sent the same requests.

// manifest is an object with further metadata and fields.
func manifest(apiVersion, kind, name, metadata, fields string) string {
	if metadata != "" {
		metadata = "," + metadata
	}
	if fields != "" {
		fields = "," + fields
	}
	return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"` + name + `"` + metadata + `}` + fields + `}`
}

func cmOf(metadata, fields string) string  { return manifest("v1", "ConfigMap", "c", metadata, fields) }
func svcOf(metadata, fields string) string { return manifest("v1", "Service", "s", metadata, fields) }
func podOf(metadata, fields string) string { return manifest("v1", "Pod", "p", metadata, fields) }
func roleOf(metadata, fields string) string {
	return manifest("rbac.authorization.k8s.io/v1", "Role", "r", metadata, fields)
}
func depOf(metadata, fields string) string {
	return manifest("apps/v1", "Deployment", "d", metadata, fields)
}
func crdOf(metadata, spec string) string {
	return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos.apply.io", metadata, `"spec":{"group":"apply.io","scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}],`+spec+`}`)
}
func apiServiceOf(spec string) string {
	return manifest("apiregistration.k8s.io/v1", "APIService", "v1.remote.apply.io", "", `"spec":{"group":"remote.apply.io","version":"v1","service":{"namespace":"default","name":"s"},"insecureSkipTLSVerify":true,`+spec+`}`)
}
func revisionOf(data string) string {
	return manifest("apps/v1", "ControllerRevision", "cr", "", `"revision":1,"data":`+data)
}
func clusterRoleOf(fields string) string {
	return manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "apply", "", fields)
}
func scaleOf(replicas string) string {
	return manifest("autoscaling/v1", "Scale", "d", "", `"spec":{"replicas":`+replicas+`}`)
}
func hpaOf(version, fields string) string {
	return manifest("autoscaling/"+version, "HorizontalPodAutoscaler", "h", "", `"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},`+fields+`}`)
}

// minimal is a Deployment's spec without replicas, more a container and its further fields.
func minimalSpec(container, more string) string {
	return `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"` + container + `","image":"i"` + more + `}]}}`
}

// kept is a configuration that kubectl remembers in an annotation.
func kept(config string) string {
	return `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + quote(config) + `}`
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var applyRows = []applyRow{
	{"an object that is not there is created", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"v"}`), 201, `data/k=v; metadata/name=c; fields=alice applies .data.k .metadata.labels.l; managers=alice Apply v1`},
		{"get c", "", 200, `fields=alice applies .data.k .metadata.labels.l; revision=same`},
	}},
	{"a field that another manager has with another value is a conflict", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1","j":"1"}`), 201, `data/k=1`},
		{"apply c as bob", cmOf(`"labels":{"l":"2"}`, `"data":{"k":"2","j":"1"}`), 409, "Conflict: Apply failed with 2 conflicts: conflicts with \"alice\":\n- .data.k\n- .metadata.labels.l; FieldManagerConflict .data.k conflict with \"alice\"; FieldManagerConflict .metadata.labels.l conflict with \"alice\""},
		{"get c", "", 200, `data/k=1; revision=same; managers=alice Apply v1`},
	}},
	{"a conflict names every manager of a field", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"apply c as bob", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.k | bob applies .data.k`},
		{"put c as carol", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1"}`), 200, `fields=alice applies .data.k | bob applies .data.k | carol updates .metadata.labels .metadata.labels.l`},
		{"apply c as dave", cmOf(`"labels":{"l":"2"}`, `"data":{"k":"2"}`), 409, "Conflict: Apply failed with 3 conflicts: conflicts with \"alice\":\n- .data.k\nconflicts with \"bob\":\n- .data.k\nconflicts with \"carol\" using v1:\n- .metadata.labels.l; FieldManagerConflict .data.k conflict with \"alice\"; FieldManagerConflict .data.k conflict with \"bob\"; FieldManagerConflict .metadata.labels.l conflict with \"carol\" using v1"},
	}},
	{"overwrite value, become sole manager", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"apply c as bob force=true", cmOf("", `"data":{"k":"2"}`), 200, `data/k=2; fields=alice applies .data.j | bob applies .data.k`},
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "bob": .data.k; FieldManagerConflict .data.k conflict with "bob"`},
	}},
	{"don't overwrite value, give up management claim", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"put c as bob", cmOf("", `"data":{"k":"2","j":"1"}`), 200, `fields=alice applies .data.j | bob updates .data.k`},
		{"apply c as alice", cmOf("", `"data":{"j":"1"}`), 200, `data={"j":"1","k":"2"}; fields=alice applies .data.j | bob updates .data.k`},
	}},
	{"don't overwrite value, become shared manager", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"put c as bob", cmOf("", `"data":{"k":"2"}`), 200, `fields=bob updates .data.k`},
		{"apply c as alice", cmOf("", `"data":{"k":"2"}`), 200, `fields=alice applies .data.k | bob updates .data.k`},
	}},
	{"several appliers of the same value share the field", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"apply c as bob", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.k | bob applies .data.k; times=alice new | bob none; revision=new`},
		{"apply c as bob", cmOf("", `"data":{"k":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .data.k; FieldManagerConflict .data.k conflict with "alice"`},
	}},
	{"a shared field that one stops applying stays, managed by the others", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"apply c as bob", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.j .data.k | bob applies .data.k`},
		{"apply c as alice", cmOf("", `"data":{"j":"1"}`), 200, `data={"j":"1","k":"1"}; fields=alice applies .data.j | bob applies .data.k`},
	}},
	{"a field that its only manager stops applying is removed", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k .metadata.labels.l`},
		{"apply c as alice", cmOf("", `"data":{"j":"1"}`), 200, `data={"j":"1"}; metadata/labels=; fields=alice applies .data.j`},
		{"apply c as alice", cmOf("", ""), 200, `data=; fields=`},
	}},
	{"a field that is removed gets its default again", []applyStep{
		{"apply d as alice", depOf("", `"spec":{"replicas":3,`+minimalSpec("c", "")+`}`), 201, `spec/replicas=3`},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 200, `spec/replicas=1`},
		{"apply d as bob", depOf("", `"spec":{"replicas":4}`), 200, `spec/replicas=4`},
	}},
	{"a field that somebody else updated is not removed", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"merge c as bob", `{"data":{"k":"2"}}`, 200, `fields=bob updates .data.k`},
		{"apply c as alice", cmOf("", ""), 200, `data={"k":"2"}; fields=bob updates .data.k`},
	}},
	{"apply needs a field manager", []applyStep{
		{"apply c", cmOf("", `"data":{"k":"1"}`), 422, `Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch; FieldValueRequired fieldManager Required value: is required for apply patch`},
		{"apply c as x force=true", cmOf("", ""), 201, `fields=`},
		{"merge c as x force=true", `{"data":{"k":"1"}}`, 422, `Invalid: PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch; FieldValueForbidden force Forbidden: may not be specified for non-apply patch`},
	}},
	{"the manager of other writes is what the user agent begins with", []applyStep{
		{"post c", cmOf("", `"data":{"k":"1"}`), 201, `fields=Go-http-client updates .data .data.k; managers=Go-http-client Update v1`},
		{"merge c", `{"data":{"j":"1"}}`, 200, `fields=Go-http-client updates .data .data.j .data.k`},
		{"put c as bob", cmOf("", `"data":{"k":"2"}`), 200, `fields=Go-http-client updates .data | bob updates .data.k`},
	}},
	{"a manager's name has limits", []applyStep{
		{"post c as " + strings.Repeat("x", 129), cmOf("", `"data":{"k":"1"}`), 422, `Invalid: CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes; FieldValueTooLong fieldManager Too long: may not be more than 128 bytes`},
		{"apply c as a\x01b", cmOf("", `"data":{"k":"1"}`), 422, `Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\x01b": invalid character U+0001 (at position 1); FieldValueInvalid fieldManager Invalid value: "a\x01b": invalid character U+0001 (at position 1)`},
		{"post c as " + strings.Repeat("x", 128), cmOf("", ""), 201, `metadata/name=c`},
	}},
	{"an update takes what it changes and never conflicts", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"put c as bob", cmOf("", `"data":{"k":"2","j":"1","i":"1"}`), 200, `fields=alice applies .data.j | bob updates .data.i .data.k`},
		{"json c as carol", `[{"op":"replace","path":"/data/j","value":"2"}]`, 200, `fields=bob updates .data.i .data.k | carol updates .data.j`},
		{"smp c as dave", `{"data":{"i":"2"}}`, 200, `fields=bob updates .data.k | carol updates .data.j | dave updates .data.i`},
		{"merge c as erin", `{"data":{"k":null}}`, 200, `data={"i":"2","j":"2"}; fields=carol updates .data.j | dave updates .data.i`},
	}},
	{"an entry is for a manager and an operation", []applyStep{
		{"post c as alice", cmOf("", `"data":{"k":"1"}`), 201, `managers=alice Update v1; fields=alice updates .data .data.k`},
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 200, `managers=alice Apply v1 | alice Update v1; fields=alice applies .data.j .data.k | alice updates .data .data.k`},
		{"apply c as alice", cmOf("", `"data":{"k":"2","j":"1"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice" using v1: .data.k; FieldManagerConflict .data.k conflict with "alice" using v1`},
		{"apply c as alice force=true", cmOf("", `"data":{"k":"2","j":"1"}`), 200, `managers=alice Apply v1 | alice Update v1; fields=alice applies .data.j .data.k | alice updates .data`},
	}},
	{"the time of an entry is of its last change", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `times=alice new`},
		{"put c as x", cmOf(`"managedFields":[`+aged("alice", "Apply", "k")+`,`+aged("bob", "Update", "j")+`]`, `"data":{"k":"1","j":"1"}`), 200, `times=alice old | x new; fields=alice applies .data.k | x updates .data.j`},
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 200, `times=alice old | x new; revision=same`},
		{"merge c as bob", `{"data":{"j":"1"}}`, 200, `times=alice old | x new; revision=same`},
		{"apply c as alice", cmOf("", `"data":{"k":"2"}`), 200, `times=alice new | x new`},
		{"merge c as bob", `{"data":{"j":"2"}}`, 200, `times=alice new | bob new`},
	}},
	{"an applied object may not have managedFields", []applyStep{
		{"apply c as alice", cmOf(`"managedFields":[`+aged("bob", "Apply", "k")+`]`, `"data":{"k":"1"}`), 400, `BadRequest: metadata.managedFields must be nil`},
		{"apply c as alice", cmOf(`"managedFields":[{}]`, `"data":{"k":"1"}`), 400, `BadRequest: metadata.managedFields must be nil`},
		{"apply c as alice", cmOf(`"managedFields":[]`, `"data":{"k":"1"}`), 400, `BadRequest: metadata.managedFields must be nil`},
		{"apply c as alice", cmOf(`"managedFields":null`, `"data":{"k":"1"}`), 201, `revision=new`},
	}},
	{"managedFields can be edited by an update", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"put c as x", cmOf(`"managedFields":[`+aged("bob", "Apply", "k")+`]`, `"data":{"k":"1","j":"1"}`), 200, `fields=bob applies .data.k`},
		{"put c as x", cmOf(`"managedFields":[{"manager":"bob","operation":"Look"}]`, `"data":{"k":"1","j":"1"}`), 200, `fields=bob applies .data.k`},
		{"put c as x", cmOf(`"managedFields":[{"manager":"bob","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV2","fieldsV1":{}}]`, `"data":{"k":"1","j":"1"}`), 200, `fields=bob applies .data.k`},
		{"put c as x", cmOf(`"managedFields":[{"manager":"bob","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"x:y":{}}}]`, `"data":{"k":"1","j":"1"}`), 200, `fields=`},
		{"put c as x", cmOf(`"managedFields":[{"manager":"bob","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:gone":{}}}]`, `"data":{"k":"1","j":"1"}`), 200, `fields=bob applies .gone`},
	}},
	{"managedFields are reset by a list of an empty entry", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"merge c as bob", `{"metadata":{"managedFields":[{}]}}`, 200, `metadata/managedFields=; data/k=1; revision=new`},
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.k | before-first-apply updates .data .data.k`},
		{"json c as bob", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`, 200, `metadata/managedFields=`},
		{"put c as bob", cmOf("", `"data":{"k":"2"}`), 200, `metadata/managedFields=; data/k=2`},
		{"apply c as alice", cmOf("", `"data":{"k":"2","j":"1"}`), 200, `fields=alice applies .data.j .data.k | before-first-apply updates .data .data.k`},
		{"put c as bob", cmOf(`"managedFields":[{}]`, `"data":{"k":"2","j":"1"}`), 200, `metadata/managedFields=`},
	}},
	{"managedFields that are absent, null or empty in an update", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"put c as bob", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.k; revision=same`},
		{"put c as bob", cmOf(`"managedFields":null`, `"data":{"k":"1"}`), 200, `fields=alice applies .data.k; revision=same`},
		{"merge c as bob", `{"metadata":{"managedFields":null}}`, 200, `fields=alice applies .data.k; revision=same`},
		{"put c as bob", cmOf(`"managedFields":[]`, `"data":{"k":"1"}`), 200, `metadata/managedFields=; revision=new`},
	}},
	{"a reset tracks no other change of the same request", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","j":"1"}`), 201, `fields=alice applies .data.j .data.k`},
		{"merge c as bob", `{"metadata":{"managedFields":[{}]},"data":{"k":"2"}}`, 200, `fields=`},
	}},
	{"what was there before the first apply has a manager", []applyStep{
		{"put c", cmOf("", `"data":{"k":"1"}`), 404, `NotFound: configmaps "c" not found`},
		{"post c as x", cmOf(`"managedFields":[{}]`, `"data":{"k":"1"}`), 201, `fields=x updates .data .data.k`},
		{"merge c as x", `{"metadata":{"managedFields":[{}]}}`, 200, `fields=`},
		{"apply c as alice", cmOf("", `"data":{"k":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k; FieldManagerConflict .data.k conflict with "before-first-apply" using v1`},
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 200, `fields=alice applies .data.k | before-first-apply updates .data .data.k`},
		{"apply c as alice force=true", cmOf("", `"data":{"k":"2"}`), 200, `fields=alice applies .data.k | before-first-apply updates .data`},
	}},
	{"more than ten managers by update: the oldest are merged", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"l":"1"}`), 201, `fields=alice applies .data.l`},
		{"put c as m0", cmOf(`"managedFields":[`+agedUpdates(12)+`]`, `"data":{"k1":"1","k2":"1","k3":"1","k4":"1","k5":"1","k6":"1","k7":"1","k8":"1","k9":"1","k10":"1","k11":"1","k12":"1"}`), 200, `fields=m0 updates .data.k1 .data.k10 .data.k11 .data.k12 .data.k2 .data.k3 .data.k4 .data.k5 .data.k6 .data.k7 .data.k8 .data.k9`},
		{"put c as m0", cmOf(`"managedFields":[`+agedUpdates(12)+`]`, `"data":{"k1":"1","k2":"1","k3":"1","k4":"1","k5":"1","k6":"1","k7":"1","k8":"1","k9":"1","k10":"1","k11":"1","k12":"1"}`), 200, `fields=ancient-changes updates .data.k1 .data.k2 .data.k3 | m10 updates .data.k10 | m11 updates .data.k11 | m12 updates .data.k12 | m4 updates .data.k4 | m5 updates .data.k5 | m6 updates .data.k6 | m7 updates .data.k7 | m8 updates .data.k8 | m9 updates .data.k9; managers=ancient-changes Update v1 | m10 Update v1 | m11 Update v1 | m12 Update v1 | m4 Update v1 | m5 Update v1 | m6 Update v1 | m7 Update v1 | m8 Update v1 | m9 Update v1`},
		{"merge c as m13", `{"data":{"k13":"1"}}`, 200, `fields=ancient-changes updates .data.k1 .data.k2 .data.k3 .data.k4 | m10 updates .data.k10 | m11 updates .data.k11 | m12 updates .data.k12 | m13 updates .data.k13 | m5 updates .data.k5 | m6 updates .data.k6 | m7 updates .data.k7 | m8 updates .data.k8 | m9 updates .data.k9`},
		{"apply c as bob", cmOf("", `"data":{"k1":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "ancient-changes" using v1: .data.k1; FieldManagerConflict .data.k1 conflict with "ancient-changes" using v1`},
	}},
	{"listType set: each item has its managers", []applyStep{
		{"apply c as alice", cmOf(`"finalizers":["x.io/a","x.io/b"]`, ""), 201, `fields=alice applies .metadata.finalizers[="x.io/a"] .metadata.finalizers[="x.io/b"]`},
		{"apply c as bob", cmOf(`"finalizers":["x.io/b","x.io/c"]`, ""), 200, `metadata/finalizers=["x.io/a","x.io/b","x.io/c"]; fields=alice applies .metadata.finalizers[="x.io/a"] .metadata.finalizers[="x.io/b"] | bob applies .metadata.finalizers[="x.io/b"] .metadata.finalizers[="x.io/c"]`},
		{"apply c as alice", cmOf(`"finalizers":["x.io/b"]`, ""), 200, `metadata/finalizers=["x.io/b","x.io/c"]; fields=alice applies .metadata.finalizers[="x.io/b"] | bob applies .metadata.finalizers[="x.io/b"] .metadata.finalizers[="x.io/c"]`},
		{"apply c as bob", cmOf("", ""), 200, `metadata/finalizers=["x.io/b"]; fields=alice applies .metadata.finalizers[="x.io/b"]`},
		{"apply c as bob", cmOf(`"finalizers":["x.io/c","x.io/c"]`, ""), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .metadata.finalizers: duplicate entries for key [="x.io/c"]`},
	}},
	{"listType map: each item has its managers, by its key", []applyStep{
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", `,"env":[{"name":"E","value":"1"}],"ports":[{"containerPort":80}]`)+`}`), 201, `fields=alice applies .spec.selector .spec.template.metadata.labels.a .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].image .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].env[name="E"] .spec.template.spec.containers[name="c"].env[name="E"].name .spec.template.spec.containers[name="c"].env[name="E"].value .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort`},
		{"apply d as bob", depOf("", `"spec":{"template":{"spec":{"containers":[{"name":"s","image":"j"},{"name":"c","env":[{"name":"F","value":"1"}]}]}}}`), 200, `fields=alice applies .spec.selector .spec.template.metadata.labels.a .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].image .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].env[name="E"] .spec.template.spec.containers[name="c"].env[name="E"].name .spec.template.spec.containers[name="c"].env[name="E"].value .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort | bob applies .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="s"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].env[name="F"] .spec.template.spec.containers[name="c"].env[name="F"].name .spec.template.spec.containers[name="c"].env[name="F"].value .spec.template.spec.containers[name="s"].image .spec.template.spec.containers[name="s"].name; spec/template/spec/containers/1/name=c; spec/template/spec/containers/0/env=`},
		{"apply d as carol", depOf("", `"spec":{"template":{"spec":{"containers":[{"name":"s","image":"k"},{"name":"c","env":[{"name":"E","value":"2"}]}]}}}`), 409, "Conflict: Apply failed with 2 conflicts: conflicts with \"alice\":\n- .spec.template.spec.containers[name=\"c\"].env[name=\"E\"].value\nconflicts with \"bob\":\n- .spec.template.spec.containers[name=\"s\"].image; FieldManagerConflict .spec.template.spec.containers[name=\"c\"].env[name=\"E\"].value conflict with \"alice\"; FieldManagerConflict .spec.template.spec.containers[name=\"s\"].image conflict with \"bob\""},
		{"apply d as bob", depOf("", `"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"F","value":"1"}]}]}}}`), 200, `fields=alice applies .spec.selector .spec.template.metadata.labels.a .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].image .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].env[name="E"] .spec.template.spec.containers[name="c"].env[name="E"].name .spec.template.spec.containers[name="c"].env[name="E"].value .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort | bob applies .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].env[name="F"] .spec.template.spec.containers[name="c"].env[name="F"].name .spec.template.spec.containers[name="c"].env[name="F"].value; spec/template/spec/containers/1=`},
		{"apply d as bob", depOf("", `"spec":{"template":{"spec":{"containers":[{"image":"j"}]}}}`), 422, `Invalid: Deployment.apps "d" is invalid: spec.template.spec.containers[1].name: Required value; FieldValueRequired spec.template.spec.containers[1].name Required value`},
		{"apply d as bob", depOf("", `"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"},{"name":"c","image":"i"}]}}}`), 500, `: failed to create typed patch object (/d; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="c"]`},
	}},
	{"listType map with a key that has a default", []applyStep{
		{"apply s as alice", svcOf("", `"spec":{"clusterIP":"None","ports":[{"name":"a","port":80}]}`), 201, `fields=alice applies .spec.clusterIP .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].name .spec.ports[port=80,protocol="TCP"].port`},
		{"apply s as bob", svcOf("", `"spec":{"ports":[{"name":"b","port":80,"protocol":"UDP"}]}`), 200, `fields=alice applies .spec.clusterIP .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].name .spec.ports[port=80,protocol="TCP"].port | bob applies .spec.ports[port=80,protocol="UDP"] .spec.ports[port=80,protocol="UDP"].name .spec.ports[port=80,protocol="UDP"].port .spec.ports[port=80,protocol="UDP"].protocol`},
		{"apply s as bob", svcOf("", `"spec":{"ports":[{"name":"c","port":80}]}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .spec.ports[port=80,protocol="TCP"].name; FieldManagerConflict .spec.ports[port=80,protocol="TCP"].name conflict with "alice"`},
	}},
	{"listType atomic: the list has its managers as a whole", []applyStep{
		{"apply r as alice", roleOf("", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`), 201, `fields=alice applies .rules`},
		{"apply r as bob", roleOf("", `"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .rules; FieldManagerConflict .rules conflict with "alice"`},
		{"apply r as bob force=true", roleOf("", `"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]`), 200, `fields=bob applies .rules; rules/0/verbs=["list"]; rules/1=`},
		{"apply r as bob", roleOf("", ""), 200, `fields=; rules=`},
	}},
	{"mapType granular: each key has its managers", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"a":"1"},"annotations":{"a":"1"}`, ""), 201, `fields=alice applies .metadata.annotations.a .metadata.labels.a`},
		{"apply c as bob", cmOf(`"labels":{"b":"1"},"annotations":{"b":"1"}`, ""), 200, `fields=alice applies .metadata.annotations.a .metadata.labels.a | bob applies .metadata.annotations.b .metadata.labels.b; metadata/labels={"a":"1","b":"1"}`},
		{"apply c as alice", cmOf("", ""), 200, `fields=bob applies .metadata.annotations.b .metadata.labels.b; metadata/labels={"b":"1"}; metadata/annotations={"b":"1"}`},
	}},
	{"mapType and structType atomic: the whole has its managers", []applyStep{
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 201, `managers=alice Apply apps/v1`},
		{"apply d as bob", depOf("", `"spec":{"selector":{"matchLabels":{"a":"b","c":"d"}}}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .spec.selector; FieldManagerConflict .spec.selector conflict with "alice"`},
		{"apply d as bob", depOf("", `"spec":{"selector":{"matchLabels":{"a":"b"}}}`), 200, `managers=alice Apply apps/v1 | bob Apply apps/v1`},
		{"apply p as alice", podOf("", `"spec":{"nodeSelector":{"a":"b"},"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}`), 201, `fields=alice applies .spec.nodeSelector .spec.containers[name="c"] .spec.containers[name="c"].image .spec.containers[name="c"].name .spec.containers[name="c"].env[name="E"] .spec.containers[name="c"].env[name="E"].name .spec.containers[name="c"].env[name="E"].valueFrom.fieldRef`},
		{"apply p as bob", podOf("", `"spec":{"nodeSelector":{"c":"d"}}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .spec.nodeSelector; FieldManagerConflict .spec.nodeSelector conflict with "alice"`},
	}},
	{"an owner is known by its uid", []applyStep{
		{"apply c as alice", cmOf(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"one","uid":"u1"}]`, ""), 201, `fields=alice applies .metadata.ownerReferences[uid="u1"]`},
		{"apply c as bob", cmOf(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"two","uid":"u2"}]`, ""), 200, `fields=alice applies .metadata.ownerReferences[uid="u1"] | bob applies .metadata.ownerReferences[uid="u2"]`},
		{"apply c as bob", cmOf(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"one","uid":"u1","controller":true}]`, ""), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .metadata.ownerReferences[uid="u1"]; FieldManagerConflict .metadata.ownerReferences[uid="u1"] conflict with "alice"`},
		{"apply c as bob", cmOf(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"u1"}]`, ""), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .metadata.ownerReferences[uid="u1"]; FieldManagerConflict .metadata.ownerReferences[uid="u1"] conflict with "alice"`},
		{"apply c as bob", cmOf(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"one","uid":"u1"},{"apiVersion":"v1","kind":"Pod","name":"one","uid":"u1"}]`, ""), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .metadata.ownerReferences: duplicate entries for key [uid="u1"]`},
	}},
	{"fields of metadata that the server keeps have no manager", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"l":"1"},"creationTimestamp":"2001-01-01T00:00:00Z","generation":7,"selfLink":"x"`, ""), 201, `fields=alice applies .metadata.labels.l; metadata/generation=7; metadata/selfLink=`},
	}},
	{"status has an entry of its own", []applyStep{
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 201, `managers=alice Apply apps/v1`},
		{"apply d/status as alice", depOf(`"labels":{"no":"no"}`, `"spec":{"replicas":9},"status":{"replicas":1,"conditions":[{"type":"Available","status":"True"}]}`), 200, `managers=alice Apply apps/v1 | alice Apply apps/v1 status; metadata/labels=; spec/replicas=1; status/replicas=1`},
		{"apply d/status as bob", depOf("", `"status":{"replicas":2}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice" with subresource "status": .status.replicas; FieldManagerConflict .status.replicas conflict with "alice" with subresource "status"`},
		{"merge d/status as carol", `{"status":{"replicas":2}}`, 200, `managers=alice Apply apps/v1 | alice Apply apps/v1 status | carol Update apps/v1 status; status/replicas=2`},
		{"apply d/status as alice", depOf("", `"status":{"conditions":[{"type":"Available","status":"True"}]}`), 200, `managers=alice Apply apps/v1 | alice Apply apps/v1 status | carol Update apps/v1 status; status/replicas=2`},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`},"status":{"replicas":44}`), 200, `managers=alice Apply apps/v1 | alice Apply apps/v1 status | carol Update apps/v1 status; status/replicas=2`},
	}},
	{"a status update cannot edit managedFields", []applyStep{
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 201, `managers=alice Apply apps/v1`},
		{"merge d/status as bob", `{"metadata":{"managedFields":[{}]},"status":{"replicas":1}}`, 200, `managers=alice Apply apps/v1 | bob Update apps/v1 status`},
	}},
	{"conditions are known by their type", []applyStep{
		{"apply p as alice", podOf("", `"spec":{"containers":[{"name":"c","image":"i"}]}`), 201, `managers=alice Apply v1`},
		{"apply p/status as kubelet", podOf("", `"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`), 200, `fields=alice applies .spec.containers[name="c"] .spec.containers[name="c"].image .spec.containers[name="c"].name | kubelet applies .status.phase .status.conditions[type="Ready"] .status.conditions[type="Ready"].status .status.conditions[type="Ready"].type`},
		{"apply p/status as gate", podOf("", `"status":{"conditions":[{"type":"x.io/gate","status":"True"}]}`), 200, `fields=alice applies .spec.containers[name="c"] .spec.containers[name="c"].image .spec.containers[name="c"].name | gate applies .status.conditions[type="x.io/gate"] .status.conditions[type="x.io/gate"].status .status.conditions[type="x.io/gate"].type | kubelet applies .status.phase .status.conditions[type="Ready"] .status.conditions[type="Ready"].status .status.conditions[type="Ready"].type; status/conditions/1/type=x.io/gate`},
		{"apply p/ephemeralcontainers as debug", podOf(`"labels":{"no":"no"}`, `"spec":{"ephemeralContainers":[{"name":"e","image":"x"}]}`), 200, `managers=alice Apply v1 | debug Apply v1 ephemeralcontainers | gate Apply v1 status | kubelet Apply v1 status; spec/ephemeralContainers/0/name=e`},
	}},
	{"scale has an entry of its own", []applyStep{
		{"apply d as alice", depOf("", `"spec":{"replicas":3,`+minimalSpec("c", "")+`}`), 201, `managers=alice Apply apps/v1`},
		{"get d/scale", "", 200, `fields=; managers=`},
		{"put d/scale as hpa", scaleOf("4"), 200, `fields=; managers=; spec/replicas=4`},
		{"get d", "", 200, `managers=alice Apply apps/v1 | hpa Update apps/v1 scale; spec/replicas=4`},
		{"apply d as alice", depOf("", `"spec":{"replicas":3,`+minimalSpec("c", "")+`}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas; FieldManagerConflict .spec.replicas conflict with "hpa" with subresource "scale" using apps/v1`},
		{"apply d/scale as bob", scaleOf("5"), 409, `Conflict: Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using autoscaling/v1: .spec.replicas; FieldManagerConflict .spec.replicas conflict with "hpa" with subresource "scale" using autoscaling/v1`},
		{"apply d/scale as bob force=true", scaleOf("5"), 200, `fields=; managers=; spec/replicas=5`},
		{"merge d/scale as carol", `{"spec":{"replicas":6}}`, 200, `fields=; managers=`},
		{"get d", "", 200, `managers=alice Apply apps/v1 | carol Update apps/v1 scale; spec/replicas=6`},
	}},
	{"transferring ownership of replicas", []applyStep{
		{"apply d as alice", depOf("", `"spec":{"replicas":3,`+minimalSpec("c", "")+`}`), 201, `spec/replicas=3`},
		{"apply d as handover", depOf("", `"spec":{"replicas":3}`), 200, `spec/replicas=3`},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 200, `spec/replicas=3; managers=alice Apply apps/v1 | handover Apply apps/v1`},
		{"put d/scale as hpa", scaleOf("5"), 200, `spec/replicas=5`},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 200, `spec/replicas=5; managers=alice Apply apps/v1 | hpa Update apps/v1 scale; revision=same`},
	}},
	{"status and scale of an absent object", []applyStep{
		{"apply d/status as alice", depOf("", `"status":{"replicas":1}`), 404, `NotFound: deployments.apps "d" not found`},
		{"apply d/scale as alice", scaleOf("1"), 404, `NotFound: deployments.apps "d" not found`},
		{"get d", "", 404, `NotFound: deployments.apps "d" not found`},
	}},
	{"other versions have entries of their own", []applyStep{
		{"apply hpa1 as alice", hpaOf("v1", `"maxReplicas":3,"targetCPUUtilizationPercentage":50`), 201, `fields=alice applies .spec.maxReplicas .spec.scaleTargetRef .spec.targetCPUUtilizationPercentage; managers=alice Apply autoscaling/v1`},
		{"apply hpa2 as bob", hpaOf("v2", `"maxReplicas":4`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .spec.maxReplicas; FieldManagerConflict .spec.maxReplicas conflict with "alice"`},
		{"apply hpa2 as bob", hpaOf("v2", `"maxReplicas":3,"minReplicas":2`), 200, `fields=alice applies .spec.maxReplicas .spec.scaleTargetRef .spec.targetCPUUtilizationPercentage | bob applies .spec.maxReplicas .spec.minReplicas .spec.scaleTargetRef.apiVersion .spec.scaleTargetRef.kind .spec.scaleTargetRef.name; managers=alice Apply autoscaling/v1 | bob Apply autoscaling/v2`},
		{"get hpa1", "", 200, `spec/minReplicas=2; spec/targetCPUUtilizationPercentage=50; managers=alice Apply autoscaling/v1 | bob Apply autoscaling/v2; revision=same`},
		{"apply hpa2 as alice", hpaOf("v2", `"maxReplicas":3`), 200, `fields=alice applies .spec.maxReplicas .spec.scaleTargetRef.apiVersion .spec.scaleTargetRef.kind .spec.scaleTargetRef.name | bob applies .spec.maxReplicas .spec.minReplicas .spec.scaleTargetRef.apiVersion .spec.scaleTargetRef.kind .spec.scaleTargetRef.name; managers=alice Apply autoscaling/v2 | bob Apply autoscaling/v2; spec/metrics=[{"resource":{"name":"cpu","target":{"averageUtilization":50,"type":"Utilization"}},"type":"Resource"}]`},
		{"merge hpa1 as carol", `{"spec":{"maxReplicas":9}}`, 200, `fields=alice applies .spec.scaleTargetRef.apiVersion .spec.scaleTargetRef.kind .spec.scaleTargetRef.name | bob applies .spec.minReplicas .spec.scaleTargetRef.apiVersion .spec.scaleTargetRef.kind .spec.scaleTargetRef.name | carol updates .spec.maxReplicas; managers=alice Apply autoscaling/v2 | bob Apply autoscaling/v2 | carol Update autoscaling/v1`},
	}},
	{"a body can be YAML", []applyStep{
		{"apply c as alice", "# comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  k: |\n    two\n    lines\n", 201, "data/k=two\nlines\n; fields=alice applies .data.k"},
		{"apply c as alice", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: w}}`, 200, `data/k=w`},
		{"apply c as alice", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\napiVersion: v1\nkind: Secret\n", 200, `data/k=; fields=`},
		{"apply c as alice", `{a: b`, 400, `BadRequest: error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected ',' or '}'`},
		{"apply c as alice", `{"a": "b", }}`, 400, `BadRequest: invalid object type: /, Kind=`},
		{"apply c as alice", "a: &a b\nc: *d\n", 400, `BadRequest: error encoding patch: yaml: unknown anchor 'd' referenced`},
		{"apply c as alice", "", 400, `BadRequest: invalid object type: /, Kind=`},
		{"apply c as alice", "[]", 400, `BadRequest: error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}`},
		{"apply c as alice", "null", 400, `BadRequest: invalid object type: /, Kind=`},
		{"apply c as alice", "{}", 400, `BadRequest: invalid object type: /, Kind=`},
	}},
	{"numbers and booleans where text belongs", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":1}`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .data.k: expected string, got &value.valueUnstructured{Value:1}`},
		{"apply c as alice", cmOf("", `"data":[]`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .data: expected map, got &{[]}`},
		{"apply c as alice", cmOf("", `"data":{"k":null}`), 201, `fields=alice applies .data.k; data={"k":""}`},
		{"apply c as alice", cmOf("", `"immutable":"yes"`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .immutable: expected boolean, got &{yes}`},
		{"apply d as alice", depOf("", `"spec":{"replicas":1.5,`+minimalSpec("c", "")+`}`), 500, `: failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured object to apps/v1, Kind=Deployment: cannot convert float64 to int32`},
		{"apply d as alice", depOf("", `"spec":{"replicas":3e0,`+minimalSpec("c", `,"resources":{"requests":{"cpu":1}}`)+`}`), 201, `spec/replicas=3; spec/template/spec/containers/0/resources/requests/cpu=1`},
	}},
	{"dry run", []applyStep{
		{"apply c as alice dryRun=All", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k; data/k=1; metadata/resourceVersion=`},
		{"get c", "", 404, `NotFound: configmaps "c" not found`},
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"apply c as bob dryRun=All", cmOf("", `"data":{"k":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .data.k; FieldManagerConflict .data.k conflict with "alice"`},
		{"apply c as bob dryRun=All force=true", cmOf("", `"data":{"k":"2"}`), 200, `fields=bob applies .data.k; data/k=2; revision=same`},
		{"get c", "", 200, `fields=alice applies .data.k; data/k=1; revision=same`},
		{"apply c as bob dryRun=Some", cmOf("", `"data":{"k":"2"}`), 422, `Invalid: PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"; FieldValueNotSupported dryRun Unsupported value: ["Some"]: supported values: "All"`},
	}},
	{"a write that changes nothing writes nothing", []applyStep{
		{"apply c as alice", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1"}`), 201, `fields=alice applies .data.k .metadata.labels.l`},
		{"apply c as alice", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1"}`), 200, `revision=same`},
		{"apply c as alice force=true", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1"}`), 200, `revision=same`},
		{"apply c as alice", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {l: '1'}}\ndata: {k: '1'}", 200, `revision=same`},
		{"put c as bob", cmOf(`"labels":{"l":"1"}`, `"data":{"k":"1"}`), 200, `revision=same`},
		{"merge c as bob", `{"data":{"k":"1"}}`, 200, `revision=same`},
		{"merge c as bob", `{}`, 200, `revision=same`},
		{"smp c as bob", `{"data":{"k":"1"}}`, 200, `revision=same`},
		{"json c as bob", `[{"op":"replace","path":"/data/k","value":"1"}]`, 200, `revision=same`},
		{"json c as bob", `[]`, 200, `revision=same; fields=alice applies .data.k .metadata.labels.l`},
	}},
	{"a status or scale that changes nothing writes nothing", []applyStep{
		{"apply d as alice", depOf("", `"spec":{"replicas":3,`+minimalSpec("c", "")+`}`), 201, `spec/replicas=3`},
		{"apply d/status as alice", depOf("", `"status":{"replicas":1}`), 200, `revision=new`},
		{"apply d/status as alice", depOf("", `"status":{"replicas":1}`), 200, `revision=same`},
		{"merge d/status as bob", `{"status":{"replicas":1}}`, 200, `revision=same`},
		{"merge d/scale as bob", `{"spec":{"replicas":3}}`, 200, `revision=same`},
		{"put d/scale as bob", scaleOf("3"), 200, `revision=same`},
		{"apply d/scale as alice", scaleOf("3"), 200, `revision=new; managers=`},
		{"apply d/scale as alice", scaleOf("3"), 200, `revision=same`},
	}},
	{"kind, version, name and namespace must be those of the path", []applyStep{
		{"apply c as alice", manifest("v1", "Secret", "c", "", ""), 400, `BadRequest: invalid object type: /v1, Kind=Secret`},
		{"apply c as alice", manifest("v2", "ConfigMap", "c", "", ""), 400, `BadRequest: invalid object type: /v2, Kind=ConfigMap`},
		{"apply c as alice", manifest("v1", "ConfigMap", "other", "", ""), 400, `BadRequest: the name of the object (other) does not match the name on the URL (c)`},
		{"apply c as alice", cmOf(`"namespace":"other"`, ""), 400, `BadRequest: the namespace of the provided object does not match the namespace sent on the request`},
		{"apply c as alice", `{"apiVersion":"v1","metadata":{"name":"c"}}`, 400, `BadRequest: invalid object type: /v1, Kind=`},
		{"apply c as alice", `{"kind":"ConfigMap","metadata":{"name":"c"}}`, 400, `BadRequest: invalid object type: /, Kind=ConfigMap`},
		{"apply c as alice", `{"apiVersion":"v1","kind":"ConfigMap"}`, 400, `BadRequest: the name of the object (c based on URL) was undeterminable: name must be provided`},
		{"apply c as alice", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}`, 400, `BadRequest: the name of the object (c based on URL) was undeterminable: name must be provided`},
		{"apply hpa2 as alice", hpaOf("v1", `"maxReplicas":3`), 400, `BadRequest: invalid object type: autoscaling/v1, Kind=HorizontalPodAutoscaler`},
	}},
	{"uid and resourceVersion are preconditions", []applyStep{
		{"apply c as alice", cmOf(`"uid":"123"`, `"data":{"k":"1"}`), 409, `Conflict: Operation cannot be fulfilled on configmaps "c": uid mismatch: the provided object specified uid 123, and no existing object was found`},
		{"apply c as alice", cmOf(`"resourceVersion":"5"`, `"data":{"k":"1"}`), 201, `data/k=1`},
		{"apply c as alice", cmOf(`"uid":"123"`, `"data":{"k":"2"}`), 422, `Invalid: ConfigMap "c" is invalid: metadata.uid: Invalid value: "123": field is immutable; FieldValueInvalid metadata.uid Invalid value: "123": field is immutable`},
		{"apply c as alice", cmOf(`"resourceVersion":"1"`, `"data":{"k":"2"}`), 409, `Conflict: Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again`},
		{"apply c as alice", cmOf(`"resourceVersion":""`, `"data":{"k":"2"}`), 200, `data/k=2; revision=new`},
		{"apply c as alice", cmOf(`"resourceVersion":"x"`, `"data":{"k":"3"}`), 500, `: strconv.ParseUint: parsing "x": invalid syntax`},
	}},
	{"an invalid result is refused", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"b@d":"1"}`), 422, `Invalid: ConfigMap "c" is invalid: data[b@d]: Invalid value: "b@d": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+'); FieldValueInvalid data[b@d] Invalid value: "b@d": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`},
		{"apply d as alice", depOf("", `"spec":{"replicas":1}`), 422, "Invalid: Deployment.apps \"d\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]; FieldValueInvalid spec.template.metadata.labels Invalid value: null: `selector` does not match template `labels`; FieldValueRequired spec.selector Required value; FieldValueRequired spec.template.spec.containers Required value"},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 201, `managers=alice Apply apps/v1`},
		{"apply d as bob force=true", depOf("", `"spec":{"selector":{"matchLabels":{"c":"d"}}}`), 422, "Invalid: Deployment.apps \"d\" is invalid: [spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`, spec.selector: Invalid value: {\"matchLabels\":{\"c\":\"d\"}}: field is immutable]; FieldValueInvalid spec.selector Invalid value: {\"matchLabels\":{\"c\":\"d\"}}: field is immutable; FieldValueInvalid spec.template.metadata.labels Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
	}},
	{"unknown fields cannot be merged", []applyStep{
		{"apply c as alice", cmOf("", `"nope":1`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema`},
		{"apply c as alice fieldValidation=Ignore", cmOf("", `"nope":1`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema`},
		{"apply c as alice fieldValidation=Strict", cmOf("", `"nope":1`), 500, `: failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema`},
		{"apply d as alice", depOf("", `"spec":{`+minimalSpec("c", `,"nope":1`)+`}`), 500, `: failed to create typed patch object (/d; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].nope: field not declared in schema`},
	}},
	{"fields that are there twice", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1","k":"2"}`), 201, `data/k=2; warnings=299 - "line 1: key \"k\" already set in map"`},
		{"apply c as alice", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  k: '3'\n  k: '4'\n", 200, `data/k=4; warnings=299 - "line 6: key \"k\" already set in map"`},
		{"apply c as alice fieldValidation=Ignore", cmOf("", `"data":{"k":"5","k":"6"}`), 200, `data/k=6; warnings=`},
		{"apply c as alice fieldValidation=Strict", cmOf("", `"data":{"k":"7","k":"8"}`), 400, "BadRequest: error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"k\" already set in map"},
		{"apply c as alice fieldValidation=Strict", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  k: '7'\n  k: '8'\n", 400, "BadRequest: error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"k\" already set in map"},
		{"apply c as alice fieldValidation=Sometimes", cmOf("", `"data":{"k":"7"}`), 422, `Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Sometimes": supported values: "", "Ignore", "Strict", "Warn"; FieldValueNotSupported fieldValidation Unsupported value: "Sometimes": supported values: "", "Ignore", "Strict", "Warn"`},
		{"apply c as alice fieldValidation=Strict", cmOf("", `"data":{"k":"9"}`), 200, `data/k=9; warnings=`},
	}},
	{"upgrading from client-side apply to server-side apply", []applyStep{
		{"post s as kubectl-client-side-apply", svcOf(kept(svcOf("", `"spec":{"clusterIP":"None","ports":[{"port":80}],"selector":{"a":"b"}}`)), `"spec":{"clusterIP":"None","ports":[{"port":80}],"selector":{"a":"b"}}`), 201, `managers=kubectl-client-side-apply Update v1`},
		{"apply s as alice", svcOf("", `"spec":{"clusterIP":"None","ports":[{"port":80}],"selector":{"a":"c"}}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .spec.selector; FieldManagerConflict .spec.selector conflict with "kubectl-client-side-apply" using v1`},
		{"apply s as kubectl", svcOf("", `"spec":{"clusterIP":"None","ports":[{"port":80}],"selector":{"a":"c"}}`), 200, `fields=kubectl applies .spec.clusterIP .spec.selector .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port | kubectl-client-side-apply updates .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration .spec.clusterIP .spec.internalTrafficPolicy .spec.ports .spec.sessionAffinity .spec.type .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port .spec.ports[port=80,protocol="TCP"].protocol .spec.ports[port=80,protocol="TCP"].targetPort; spec/selector={"a":"c"}`},
		{"apply s as kubectl", svcOf("", `"spec":{"clusterIP":"None","ports":[{"port":80}]}`), 200, `spec/selector=`},
	}},
	{"a field that client-side apply doesn't have is still a conflict", []applyStep{
		{"post c as kubectl-client-side-apply", cmOf(kept(cmOf("", `"data":{"k":"1"}`)), `"data":{"k":"1","j":"1"}`), 201, `managers=kubectl-client-side-apply Update v1`},
		{"apply c as kubectl", cmOf("", `"data":{"k":"2","j":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.j; FieldManagerConflict .data.j conflict with "kubectl-client-side-apply" using v1`},
	}},
	{"the annotation follows, for a way back to client-side apply", []applyStep{
		{"apply c as kubectl", cmOf(kept("{}"), `"data":{"k":"1"}`), 201, `metadata/annotations={"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"1\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{},\"name\":\"c\"}}\n"}`},
		{"apply c as kubectl", cmOf(kept("{}"), `"data":{"k":"2"}`), 200, `metadata/annotations={"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{},\"name\":\"c\"}}\n"}`},
		{"apply c as alice force=true", cmOf("", `"data":{"k":"3"}`), 200, `metadata/annotations={"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{},\"name\":\"c\"}}\n"}`},
	}},
	{"a new object of the same name starts anew", []applyStep{
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice applies .data.k`},
		{"delete c", "", 200, `status=Success`},
		{"apply c as bob", cmOf("", `"data":{"k":"2"}`), 201, `fields=bob applies .data.k; data={"k":"2"}`},
	}},
	{"an apply may end the deletion of an object", []applyStep{
		{"apply c as alice", cmOf(`"finalizers":["x.io/a"]`, ""), 201, `fields=alice applies .metadata.finalizers[="x.io/a"]`},
		{"delete c", "", 200, `metadata/deletionGracePeriodSeconds=0; fields=alice applies .metadata.finalizers[="x.io/a"]`},
		{"apply c as bob", cmOf(`"finalizers":["x.io/b"]`, ""), 422, `Invalid: ConfigMap "c" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}; FieldValueForbidden metadata.finalizers Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}`},
		{"apply c as alice", cmOf("", ""), 200, `metadata/finalizers=`},
		{"get c", "", 404, `NotFound: configmaps "c" not found`},
	}},
	{"pretty answers and parameters that nobody knows", []applyStep{
		{"apply c as alice pretty=true", cmOf("", `"data":{"k":"1"}`), 201, `data/k=1`},
		{"apply c as alice unknown=parameter", cmOf("", `"data":{"k":"1"}`), 200, `revision=same`},
	}},
	{"kinds without apply configurations", []applyStep{
		{"apply crd as alice", crdOf("", `"names":{"plural":"foos","kind":"Foo"}`), 201, `fields=alice applies .spec.group .spec.scope .spec.versions .spec.names.kind .spec.names.plural`},
		{"apply crd as bob", crdOf(`"labels":{"l":"1"}`, `"names":{"plural":"foos","kind":"Foo","shortNames":["f"]}`), 200, `fields=alice applies .spec.group .spec.scope .spec.versions .spec.names.kind .spec.names.plural | bob applies .metadata.labels.l .spec.group .spec.scope .spec.versions .spec.names.kind .spec.names.plural .spec.names.shortNames`},
		{"apply crd as carol", crdOf("", `"names":{"plural":"foos","kind":"Bar"}`), 409, "Conflict: Apply failed with 2 conflicts: conflicts with \"alice\":\n- .spec.names.kind\nconflicts with \"bob\":\n- .spec.names.kind; FieldManagerConflict .spec.names.kind conflict with \"alice\"; FieldManagerConflict .spec.names.kind conflict with \"bob\""},
		{"apply apiservice as alice", apiServiceOf(`"groupPriorityMinimum":100,"versionPriority":10`), 201, `fields=alice applies .spec.group .spec.groupPriorityMinimum .spec.insecureSkipTLSVerify .spec.version .spec.versionPriority .spec.service.name .spec.service.namespace`},
		{"apply apiservice as bob", apiServiceOf(`"groupPriorityMinimum":100,"versionPriority":11`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .spec.versionPriority; FieldManagerConflict .spec.versionPriority conflict with "alice"`},
		{"delete apiservice", "", 200, `kind=Status`},
	}},
	{"objects in no namespace", []applyStep{
		{"apply clusterrole as alice", clusterRoleOf(`"rules":[]`), 201, `fields=alice applies .rules`},
		{"apply clusterrole as alice", clusterRoleOf(`"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`), 200, `fields=alice applies .aggregationRule.clusterRoleSelectors; rules=`},
		{"apply clusterrole as alice", strings.Replace(clusterRoleOf(""), `"metadata":{`, `"metadata":{"namespace":"x",`, 1), 200, `metadata/namespace=; revision=new`},
		{"delete clusterrole", "", 200, `kind=Status`},
	}},
	{"what a strategy resets has no manager", []applyStep{
		{"post d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`},"status":{"replicas":3}`), 201, `fields=alice updates .spec.progressDeadlineSeconds .spec.replicas .spec.revisionHistoryLimit .spec.selector .spec.strategy.rollingUpdate .spec.strategy.type .spec.strategy.rollingUpdate.maxSurge .spec.strategy.rollingUpdate.maxUnavailable .spec.template.metadata.labels .spec.template.metadata.labels.a .spec.template.spec.dnsPolicy .spec.template.spec.restartPolicy .spec.template.spec.schedulerName .spec.template.spec.securityContext .spec.template.spec.terminationGracePeriodSeconds .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].image .spec.template.spec.containers[name="c"].imagePullPolicy .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].resources .spec.template.spec.containers[name="c"].terminationMessagePath .spec.template.spec.containers[name="c"].terminationMessagePolicy`},
		{"put d as bob", depOf("", `"spec":{`+minimalSpec("c", "")+`},"status":{"replicas":4}`), 200, `managers=alice Update apps/v1; status/replicas=; revision=same`},
		{"put d/status as carol", depOf(`"labels":{"no":"no"}`, `"spec":{"replicas":9,`+minimalSpec("x", "")+`},"status":{"replicas":5}`), 200, `managers=alice Update apps/v1 | carol Update apps/v1 status; metadata/labels=; status/replicas=5`},
	}},
	{"a map that others have emptied keeps the manager who made it", []applyStep{
		{"post c as alice", cmOf("", `"data":{"k":"1"}`), 201, `fields=alice updates .data .data.k`},
		{"apply c as bob force=true", cmOf("", `"data":{"k":"2"}`), 200, `fields=alice updates .data | bob applies .data.k`},
		{"apply c as bob", cmOf("", ""), 200, `fields=alice updates .data; data=`},
		{"apply c as bob", cmOf("", `"data":{"k":"3"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice" using v1: .data; FieldManagerConflict .data conflict with "alice" using v1`},
	}},
	{"data that is one value as a whole, whatever spaces it has", []applyStep{
		{"post cr as alice", revisionOf(`{"a": {"b": "<1>"} }`), 201, `fields=alice updates .data .revision`},
		{"put cr as bob", revisionOf(`{"a": {"b": "<1>"} }`), 200, `fields=alice updates .data .revision; revision=same`},
		{"apply cr as bob", revisionOf(`{"a": {"b": "<1>"} }`), 200, `fields=alice updates .data .revision | bob applies .data .revision`},
		{"put cr as bob", revisionOf(`{}`), 422, `Invalid: ControllerRevision.apps "cr" is invalid: data: Invalid value: {}: field is immutable; FieldValueInvalid data Invalid value: {}: field is immutable`},
	}},
	{"defaults have no manager", []applyStep{
		{"apply s as alice", svcOf("", `"spec":{"clusterIP":"None","ports":[{"port":80}]}`), 201, `fields=alice applies .spec.clusterIP .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port; spec/ports/0/protocol=TCP; spec/sessionAffinity=None`},
		{"put s as alice", svcOf("", `"spec":{"clusterIP":"None","ports":[{"name":"a","port":80},{"name":"b","port":81}]}`), 200, `fields=alice applies .spec.clusterIP .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].port | alice updates .spec.ports[port=81,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].name .spec.ports[port=81,protocol="TCP"].name .spec.ports[port=81,protocol="TCP"].port .spec.ports[port=81,protocol="TCP"].protocol .spec.ports[port=81,protocol="TCP"].targetPort`},
	}},
}

// aged is an old entry of managedFields for one field of a ConfigMap's data.
func aged(manager, operation, key string) string {
	return `{"manager":"` + manager + `","operation":"` + operation + `","apiVersion":"v1","time":"2000-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:` + key + `":{}}}}`
}

// agedUpdates are the entries of n managers by update, each with a key of its own and a
// year later than the one before.
func agedUpdates(n int) string {
	var entries []string
	for i := 1; i <= n; i++ {
		entry := aged(fmt.Sprint("m", i), "Update", fmt.Sprint("k", i))
		entries = append(entries, strings.Replace(entry, "2000-", fmt.Sprint(1980+i, "-"), 1))
	}
	return strings.Join(entries, ",")
}
