package rest_test

import "strings"

var cborRows = []encoding{
	{name: "CBOR: begins with a tag", request: "GET " + configMaps + "/a", headers: accept(inCBOR), code: 200, media: inCBOR, text: []string{tagged, "<&> ü"}, fields: []string{"kind=ConfigMap", "apiVersion=v1", "data.key=<&> ü"}},
	{name: "CBOR: a large object", request: "GET " + configMaps + "/big", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"metadata.name=big"}},
	{name: "CBOR: a list", request: "GET " + configMaps + "?labelSelector=l", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=ConfigMapList", "apiVersion=v1", "items.0.metadata.name=a", "items.0.kind=", "items.1="}},
	{name: "CBOR: a large list", request: "GET " + configMaps, headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"items.0.metadata.name=a", "items.1.metadata.name=big"}},
	{name: "CBOR: a list without items", request: "GET /api/v1/namespaces/none/configmaps", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=ConfigMapList", "items=[]"}},
	{name: "CBOR: a page", request: "GET " + configMaps + "?limit=1", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"metadata.remainingItemCount=1"}},
	{name: "CBOR: another version", request: "GET /apis/events.k8s.io/v1/events", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=EventList", "apiVersion=events.k8s.io/v1"}},
	{name: "CBOR: an error", request: "GET " + configMaps + "/none", headers: accept(inCBOR), code: 404, media: inCBOR, message: `configmaps "none" not found`},
	{name: "CBOR: a scale", request: "GET " + deploymentsPath + "/d/scale", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=Scale", "apiVersion=autoscaling/v1", "spec.replicas=2"}},
	{name: "CBOR: a status", request: "GET " + deploymentsPath + "/d/status", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=Deployment", "apiVersion=apps/v1"}},
	{name: "CBOR: a review, both ways", request: "POST " + reviews, headers: sends(inCBOR, inCBOR), body: toCBOR(review), code: 201, media: inCBOR, fields: []string{"kind=SelfSubjectAccessReview"}},
	{name: "CBOR: is never pretty", request: "GET " + configMaps + "/a?pretty=1", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=ConfigMap"}},
	{name: "CBOR: compressed", request: "GET " + configMaps + "/big", headers: unpacked(inCBOR), code: 200, media: inCBOR, text: []string{gzipped}},
	{name: "CBOR: a compressed list", request: "GET " + configMaps, headers: unpacked(inCBOR), code: 200, media: inCBOR, text: []string{gzipped}},
	{name: "CBOR: a patch in JSON", request: "PATCH " + configMaps + "/a", headers: sends("application/merge-patch+json", inCBOR), body: `{"data":{"more":"1"}}`, code: 200, media: inCBOR, fields: []string{"data.more=1"}},
}

var cborMetadataRows = []encoding{
	{name: "CBOR: metadata", request: "GET " + configMaps + "/a", headers: accept(metadataOf(inCBOR, "PartialObjectMetadata", "v1")), code: 200, media: inCBOR, fields: []string{"kind=PartialObjectMetadata", "apiVersion=meta.k8s.io/v1", "metadata.labels.l=1", "data="}},
	{name: "CBOR: a list of metadata", request: "GET " + configMaps, headers: accept(metadataOf(inCBOR, "PartialObjectMetadataList", "v1")), code: 200, media: inCBOR, fields: []string{"kind=PartialObjectMetadataList", "apiVersion=meta.k8s.io/v1", "items.1.kind=PartialObjectMetadata", "items.1.metadata.name=big", "items.1.data="}},
	{name: "CBOR: a list of metadata in v1beta1", request: "GET " + configMaps + "?limit=1", headers: accept(metadataOf(inCBOR, "PartialObjectMetadataList", "v1beta1")), code: 200, media: inCBOR, fields: []string{"apiVersion=meta.k8s.io/v1beta1", "items.0.apiVersion=meta.k8s.io/v1beta1", "metadata.remainingItemCount=1"}},
	{name: "CBOR: a list of metadata without items has null", request: "GET /api/v1/namespaces/none/configmaps", headers: accept(metadataOf(inCBOR, "PartialObjectMetadataList", "v1")), code: 200, media: inCBOR, fields: []string{"kind=PartialObjectMetadataList", "items="}},
	{name: "CBOR: a list is no object", request: "GET " + configMaps, headers: accept(metadataOf(inCBOR, "PartialObjectMetadata", "v1") + "," + inCBOR), code: 406, media: inCBOR, message: "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
	{name: "CBOR: there is no table", request: "GET " + configMaps, headers: accept(inCBOR + ";as=Table;v=v1;g=meta.k8s.io"), code: 406, message: cborHandlerRefuses},
	{name: "CBOR: no table, but an object", request: "GET " + configMaps, headers: accept(inCBOR+";as=Table;v=v1;g=meta.k8s.io", inCBOR), code: 200, media: inCBOR, fields: []string{"kind=ConfigMapList"}},
}

var cborNegotiationRows = []encoding{
	{name: "CBOR: with JSON as the fallback", request: "GET " + configMaps + "/a", headers: accept(inCBOR, inJSON+";q=0.5"), code: 200, media: inCBOR},
	{name: "CBOR: as the fallback", request: "GET " + configMaps + "/a", headers: accept("text/html", inCBOR), code: 200, media: inCBOR},
	{name: "CBOR: not for whoever accepts anything", request: "GET " + configMaps + "/a", headers: accept("*/*"), code: 200},
	{name: "CBOR: not for whoever says nothing", request: "GET " + configMaps + "/a", headers: accept(""), code: 200},
	{name: "CBOR: a stream's media type with a parameter", request: "GET " + configMaps, headers: accept(inCBOR + ";stream=watch"), code: 200, media: inCBOR},
	{name: "CBOR: 406 of the router", request: "GET " + configMaps + "/a", headers: accept("text/html"), code: 406, message: cborRouterRefuses},
	{name: "CBOR: 406 of the router of lists", request: "GET " + configMaps, headers: accept("text/html"), code: 406, message: cborListsRouterRefuses},
	{name: "CBOR: 406 of the router for a sequence", request: "GET " + configMaps + "/a", headers: accept("application/cbor-seq"), code: 406, message: cborRouterRefuses},
	{name: "CBOR: 406 of the handler for a list as a sequence", request: "GET " + configMaps, headers: accept("application/cbor-seq"), code: 406, message: cborHandlerRefuses},
	{name: "CBOR: 406 of the handler for a watch as a sequence", request: "GET " + configMaps + "?watch=1", headers: accept("application/cbor-seq"), code: 406, message: cborHandlerRefuses},
	{name: "CBOR: 406 of a watch in YAML", request: "GET " + configMaps + "?watch=1", headers: accept(inYAML), code: 406, media: inYAML, message: "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"},
	{name: "CBOR: the router's errors are JSON", request: "POST " + configMaps + "/a", headers: accept(inCBOR), body: "{}", code: 405},
	{name: "CBOR: so is that of a path that no resource has", request: "GET /api/v1/nothing", headers: accept(inCBOR), code: 404},
	{name: "CBOR: a wrong name is the verb's error", request: "GET " + configMaps + "/a%25b", headers: accept(inCBOR), code: 400, media: inCBOR},
	{name: "CBOR: of custom resources, too", request: "GET " + widgetsPath + "/a%25b", headers: accept(inCBOR), code: 400, media: inCBOR},
	{name: "CBOR: 415", request: "POST " + configMaps, headers: sends("text/plain", inCBOR), body: "x", code: 415, media: inCBOR, message: cborBodyRefused},
	{name: "CBOR: 415 of a patch as plain CBOR", request: "PATCH " + configMaps + "/a", headers: sends(inCBOR, inCBOR), body: toCBOR(`{}`), code: 415, message: "415: Unsupported Media Type"},
}

var cborInputRows = []encoding{
	{name: "CBOR: a create", request: "POST " + configMaps, headers: sends(inCBOR, inCBOR), body: toCBOR(configMap("p", "1")), code: 201, media: inCBOR, fields: []string{"data.key=1"}},
	{name: "CBOR: a create without the tag, kind and apiVersion", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: strings.TrimPrefix(toCBOR(`{"metadata":{"name":"q"},"binaryData":{"b":"AP//gA=="}}`), tagged), code: 201, fields: []string{"binaryData.b=AP//gA=="}},
	{name: "CBOR: an update, JSON out", request: "PUT " + configMaps + "/p", headers: sends(inCBOR, inJSON), body: toCBOR(configMap("p", "2")), code: 200, fields: []string{"data.key=2"}},
	{name: "CBOR: an update of a scale", request: "PUT " + deploymentsPath + "/d/scale", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"metadata":{"name":"d"},"spec":{"replicas":3}}`), code: 200, media: inCBOR, fields: []string{"spec.replicas=3"}},
	{name: "CBOR: DeleteOptions", request: "DELETE " + configMaps + "/p", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"1"}}`), code: 409, media: inCBOR, fields: []string{"kind=Status"}},
	{name: "CBOR: DeleteOptions of a group", request: "DELETE " + configMaps + "/p", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`), code: 200, media: inCBOR, fields: []string{"kind=Status", "status=Success"}},
	{name: "CBOR: DeleteOptions of a collection", request: "DELETE " + configMaps + "?labelSelector=none", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"kind":"DeleteOptions","apiVersion":"v1"}`), code: 200, media: inCBOR, fields: []string{"kind=ConfigMapList", "items=[]"}},
	{name: "CBOR: DeleteOptions that are nothing", request: "DELETE " + configMaps + "/a", headers: sends(inCBOR, inCBOR), body: "\xff", code: 400, media: inCBOR},
	{name: "CBOR: an apply that creates", request: "PATCH " + configMaps + "/applied?fieldManager=m", headers: sends(applyCBOR, inCBOR), body: toCBOR(configMap("applied", "1")), code: 201, media: inCBOR, fields: []string{"data.key=1", "metadata.managedFields.0.manager=m", "metadata.managedFields.0.operation=Apply"}},
	{name: "CBOR: an apply that changes nothing", request: "PATCH " + configMaps + "/applied?fieldManager=m", headers: sends(applyCBOR, inCBOR), body: toCBOR(configMap("applied", "1")), code: 200, media: inCBOR, fields: []string{"data.key=1"}},
	{name: "CBOR: an apply that conflicts", request: "PATCH " + configMaps + "/applied?fieldManager=n", headers: sends(applyCBOR, inCBOR), body: toCBOR(configMap("applied", "2")), code: 409, media: inCBOR, message: `Apply failed with 1 conflict: conflict with "m": .data.key`},
	{name: "CBOR: an apply in YAML says the same", request: "PATCH " + configMaps + "/applied?fieldManager=m", headers: sends("application/apply-patch+yaml", inCBOR), body: configMap("applied", "1"), code: 200, media: inCBOR, fields: []string{"data.key=1"}},
	{name: "CBOR: the patches that there are", request: "PATCH " + widgetsPath + "/w", headers: sends("application/strategic-merge-patch+json", inCBOR), body: `{}`, code: 415, media: inCBOR, message: "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, application/apply-patch+cbor"},
	{name: "CBOR: an unknown field is a warning", request: "POST " + configMaps, headers: sends(inCBOR, inCBOR), body: toCBOR(`{"metadata":{"name":"warned"},"nope":1}`), code: 201, media: inCBOR, head: []string{`Warning=299 - "cbor: found unknown field at map element index 0"`}},
	{name: "CBOR: an unknown field is refused", request: "POST " + configMaps + "?fieldValidation=Strict", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"metadata":{"name":"warned"},"nope":1}`), code: 400, media: inCBOR, message: `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: cbor: found unknown field at map element index 0`},
	{name: "CBOR: an unknown field is ignored", request: "PUT " + configMaps + "/warned?fieldValidation=Ignore", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"metadata":{"name":"warned"},"nope":1}`), code: 200, media: inCBOR, head: []string{"Warning="}},
}

// nested is CBOR that is nested n deep, beside a kind and apiVersion.
func nested(n int) string {
	return "\xa2\x44kind\x49ConfigMap\x44data" + strings.Repeat("\x81", n) + "\xf6"
}

// parts is a definition whose schema has a million parts, which are nothing.
var parts = "\xa1\x44spec\xa1\x48versions\x81\xa1\x46schema\xa1\x4fopenAPIV3Schema\xa1\x45allOf\x99\x03\xe8" +
	strings.Repeat("\xa1\x45allOf\x99\x03\xe8"+strings.Repeat("\xf6", 1000), 1000)

var cborRefusedRows = []encoding{
	{name: "CBOR: refused: of another kind", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: toCBOR(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"}}`), code: 400, message: `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
	{name: "CBOR: refused: nothing", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: EOF (<empty>)"},
	{name: "CBOR: refused: no CBOR", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\xff\xff", code: 400, message: `the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: unexpected "break" code (ffff)`},
	{name: "CBOR: refused: truncated", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\xa1\x44ki", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: unexpected EOF (a1446b69)"},
	{name: "CBOR: refused: trailing bytes", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: toCBOR(`{}`) + "\xf6", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: 1 bytes of extraneous data starting at index 4 (d9d9f7a0f6)"},
	{name: "CBOR: refused: a field twice", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\xa2\x41a\xf6\x41a\xf6", code: 400, message: `the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: found duplicate map key "a" at map element index 1 (a24161f64161f6)`},
	{name: "CBOR: refused: a text that is not UTF-8", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\xa1\x44kind\x61\xff", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: invalid UTF-8 string (a1446b696e6461ff)"},
	{name: "CBOR: refused: nested too deep", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: nested(10_000), code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: exceeded max nested level 10000 (a2446b696e6449436f6e6669674d61704464617461818181818181818181 ...)"},
	{name: "CBOR: refused: nested very deep", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: nested(1_000_000), code: 400},
	{name: "CBOR: refused: a list that is too long", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: exceeded max number of elements 2147483647 for CBOR array (9b7fffffffffffffff)"},
	{name: "CBOR: refused: a map that is too long", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\xba\x00\x20\x00\x01", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: exceeded max number of key-value pairs 2097152 for CBOR map (ba00200001)"},
	{name: "CBOR: refused: a text longer than the body", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: "\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", code: 400},
	{name: "CBOR: refused: infinity", request: "POST " + widgetsPath, headers: sends(inCBOR, inJSON), body: "\xa1\x44spec\xf9\x7c\x00", code: 400},
	{name: "CBOR: refused: too large", request: "POST " + configMaps, headers: sends(inCBOR, inJSON), body: toCBOR(configMap("x", strings.Repeat("x", 1<<20))), code: 413},
	{name: "CBOR: refused: a definition of a million parts", request: "POST " + definitionsPath, headers: sends(inCBOR, inJSON), body: parts, code: 413, message: "Request entity too large: The body has too many values"},
	{name: "CBOR: refused: so is an apply of it", request: "PATCH " + definitionsPath + "/widgets.example.com?fieldManager=m", headers: sends(applyCBOR, inJSON), body: parts, code: 413, message: "Request entity too large: The body has too many values"},
	{name: "CBOR: refused: an apply that is null", request: "PATCH " + configMaps + "/z?fieldManager=m", headers: sends(applyCBOR, inJSON), body: "\xf6", code: 400},
	{name: "CBOR: refused: an apply that is a list", request: "PATCH " + configMaps + "/z?fieldManager=m", headers: sends(applyCBOR, inJSON), body: "\x80", code: 400, message: "error decoding patch: cbor: cannot unmarshal array into Go value of type map[string]interface {}"},
	{name: "CBOR: refused: an apply with a field twice", request: "PATCH " + configMaps + "/z?fieldManager=m&fieldValidation=Ignore", headers: sends(applyCBOR, inJSON), body: "\xa2\x41a\xf6\x41a\xf6", code: 400, message: `error decoding patch: cbor: found duplicate map key "a" at map element index 1`},
	{name: "CBOR: refused: an apply that is nested very deep", request: "PATCH " + configMaps + "/z?fieldManager=m", headers: sends(applyCBOR, inJSON), body: nested(1_000_000), code: 400, message: "error decoding patch: cbor: exceeded max nested level 10000"},
}

var cborCustomRows = []encoding{
	{name: "CBOR: a custom resource", request: "GET " + widgetsPath + "/w", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=Widget", "apiVersion=example.com/v1", "spec.replicas=2"}},
	{name: "CBOR: custom resources", request: "GET " + widgetsPath, headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=WidgetList", "apiVersion=example.com/v1", "items.0.kind=Widget", "items.0.metadata.name=w"}},
	{name: "CBOR: no custom resources", request: "GET /apis/example.com/v1/namespaces/none/widgets", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=WidgetList", "items=[]"}},
	{name: "CBOR: metadata of custom resources", request: "GET " + widgetsPath, headers: accept(metadataOf(inCBOR, "PartialObjectMetadataList", "v1")), code: 200, media: inCBOR, fields: []string{"items.0.kind=PartialObjectMetadata", "items.0.metadata.name=w", "items.0.spec="}},
	{name: "CBOR: a scale of a custom resource", request: "GET " + widgetsPath + "/w/scale", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"kind=Scale", "spec.replicas=2"}},
	{name: "CBOR: an update of such a scale", request: "PUT " + widgetsPath + "/w/scale", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"w"},"spec":{"replicas":4}}`), code: 200, media: inCBOR, fields: []string{"spec.replicas=4"}},
	{name: "CBOR: an apply of a custom resource's status", request: "PATCH " + widgetsPath + "/w/status?fieldManager=s", headers: sends(applyCBOR, inCBOR), body: toCBOR(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"status":{"replicas":4}}`), code: 200, media: inCBOR, fields: []string{"status.replicas=4"}},
	{name: "CBOR: a new custom resource", request: "POST " + widgetsPath, headers: sends(inCBOR, inCBOR), body: toCBOR(strings.Replace(widget, `"w"`, `"new"`, 1)), code: 201, media: inCBOR, fields: []string{"metadata.name=new"}},
	{name: "CBOR: an update of a custom resource", request: "PUT " + widgetsPath + "/new", headers: sends(inCBOR, inCBOR), body: toCBOR(strings.Replace(widget, `"w"`, `"new"`, 1)), code: 422, media: inCBOR},
	{name: "CBOR: unknown fields are pruned even if they should be refused", request: "POST " + widgetsPath + "?fieldValidation=Strict", headers: sends(inCBOR, inCBOR), body: toCBOR(strings.Replace(widget, `"name":"w"},`, `"name":"pruned"},"nope":1,`, 1)), code: 201, media: inCBOR, fields: []string{"nope="}, head: []string{"Warning="}},
	{name: "CBOR: an apply of a custom resource", request: "PATCH " + widgetsPath + "/applied?fieldManager=m", headers: sends(applyCBOR, inCBOR), body: toCBOR(strings.Replace(widget, `"w"`, `"applied"`, 1)), code: 201, media: inCBOR, fields: []string{"metadata.managedFields.0.operation=Apply", "spec.replicas=2"}},
	{name: "CBOR: bytes that are not UTF-8", request: "POST " + widgetsPath, headers: sends(inCBOR, inJSON), body: strings.Replace(toCBOR(strings.Replace(widget, `"name":"w"`, `"name":"utf","annotations":{"a":"xyz"}`, 1)), "\x43xyz", "\x43x\xffz", 1), code: 201, fields: []string{"metadata.annotations.a=x\ufffdz"}},
	{name: "CBOR: and they are as JSON has them", request: "GET " + widgetsPath + "/utf", headers: accept(inCBOR), code: 200, media: inCBOR, fields: []string{"metadata.annotations.a=x\ufffdz"}},
	{name: "CBOR: an apply with bytes that are not UTF-8", request: "PATCH " + widgetsPath + "/utf?fieldManager=m", headers: sends(applyCBOR, inJSON), body: strings.Replace(toCBOR(strings.Replace(widget, `"name":"w"`, `"name":"utf","annotations":{"xyz":"1"}`, 1)), "\x43xyz", "\x43x\xffz", 1), code: 422},
	{name: "CBOR: a custom resource without a kind", request: "POST " + widgetsPath, headers: sends(inCBOR, inJSON), body: toCBOR(`{"metadata":{"name":"x"}}`), code: 400, text: []string{"the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in"}},
	{name: "CBOR: an error of a custom resource", request: "GET " + widgetsPath + "/none", headers: accept(inCBOR), code: 404, media: inCBOR, message: `widgets.example.com "none" not found`},
	{name: "CBOR: an error before the verb is JSON", request: "GET " + widgetsPath + "/w/nothing", headers: accept(inCBOR), code: 404},
	{name: "CBOR: 406 of custom resources", request: "GET " + widgetsPath + "/w", headers: accept("text/html"), code: 406, message: cborHandlerRefuses},
	{name: "CBOR: 415 of custom resources", request: "POST " + widgetsPath, headers: sends("text/plain", inJSON), body: "x", code: 415, message: cborBodyRefused},
	{name: "CBOR: a deletion of a custom resource", request: "DELETE " + widgetsPath + "/new", headers: sends(inCBOR, inCBOR), body: toCBOR(`{"kind":"DeleteOptions","apiVersion":"v1"}`), code: 200, media: inCBOR, fields: []string{"status=Success"}},
}
