package rest_test

import (
	"strings"
)

var defaultRows = []encoding{
	{name: "JSON: the default encoding, without Accept", request: "GET " + configMaps + "/a", headers: []string{"Accept", ""}, code: 200, fields: []string{"kind=ConfigMap"}, text: []string{"}\n"}, not: []string{"\n "}},
	{name: "JSON: application/json", request: "GET " + configMaps + "/a", headers: accept(inJSON), code: 200, fields: []string{"data.key=<&> ü"}},
	{name: "JSON: a charset changes nothing", request: "GET " + configMaps + "/a", headers: accept("application/json; charset=utf-8"), code: 200},
	{name: "JSON: anything", request: "GET " + configMaps + "/a", headers: accept("*/*"), code: 200, fields: []string{"kind=ConfigMap"}},
	{name: "JSON: unknown parameters change nothing", request: "GET " + configMaps + "/a", headers: accept("application/json;color=red;export=1;sv=v1;stream=watch"), code: 200},
	{name: "JSON: a list", request: "GET " + configMaps + "?labelSelector=l", code: 200, fields: []string{"kind=ConfigMapList", "items.0.metadata.name=a", "items.0.kind="}},
	{name: "JSON: a list without items", request: "GET /api/v1/namespaces/none/configmaps", code: 200, text: []string{`,"items":[]}`}},
	{name: "JSON: HTML characters are escaped", request: "GET " + configMaps + "/a", code: 200, text: []string{`"\u003c\u0026\u003e ü"`}},
}

const indented = "{\n  \""

var prettyRows = []encoding{
	{name: "pretty: ?pretty=true", request: "GET " + configMaps + "/a?pretty=true", code: 200, text: []string{indented}},
	{name: "pretty: ?pretty=1", request: "GET " + configMaps + "?pretty=1", code: 200, text: []string{indented}},
	{name: "pretty: ?pretty=false", request: "GET " + configMaps + "/a?pretty=false", headers: []string{"User-Agent", "curl/8"}, code: 200, not: []string{"\n "}},
	{name: "pretty: ?pretty= says nothing", request: "GET " + configMaps + "/a?pretty=", headers: []string{"User-Agent", "curl/8"}, code: 200, text: []string{indented}},
	{name: "pretty: ?pretty=nonsense is false", request: "GET " + configMaps + "/a?pretty=maybe", headers: []string{"User-Agent", "curl/8"}, code: 200, not: []string{"\n "}},
	{name: "pretty: a parameter of the media type", request: "GET " + configMaps + "/a?pretty=0", headers: accept("application/json;pretty=1"), code: 200, text: []string{indented}},
	{name: "pretty: but only pretty=1", request: "GET " + configMaps + "/a", headers: accept("application/json;pretty=true"), code: 200, not: []string{"\n "}},
	{name: "pretty: for curl", request: "GET " + configMaps + "/a", headers: []string{"User-Agent", "curl/8.5"}, code: 200, text: []string{indented}},
	{name: "pretty: for Wget", request: "GET " + configMaps + "/a", headers: []string{"User-Agent", "Wget/1.2"}, code: 200, text: []string{indented}},
	{name: "pretty: for browsers", request: "GET " + configMaps + "/a", headers: []string{"User-Agent", "Mozilla/5.0 (X11)"}, code: 200, text: []string{indented}},
	{name: "pretty: not for others", request: "GET " + configMaps + "/a", headers: []string{"User-Agent", "Mozilla/4.0"}, code: 200, not: []string{"\n "}},
	{name: "pretty: errors", request: "GET " + configMaps + "/none?pretty=1", code: 404, text: []string{indented}},
	{name: "pretty: tables", request: "GET " + configMaps + "?pretty=1", headers: accept(tableV1), code: 200, text: []string{indented}},
	{name: "pretty: metadata", request: "GET " + configMaps + "?pretty=1", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, text: []string{indented}},
	{name: "pretty: not YAML", request: "GET " + configMaps + "/a?pretty=1", headers: accept(inYAML), code: 200, media: inYAML, text: []string{"\nkind: ConfigMap\n"}},
}

var yamlRows = []encoding{
	{name: "YAML: an object", request: "GET " + configMaps + "/a", headers: accept(inYAML), code: 200, media: inYAML, text: []string{"apiVersion: v1\ndata:\n  key: <&> ü\nkind: ConfigMap\n"}},
	{name: "YAML: a list", request: "GET " + configMaps + "?labelSelector=l", headers: accept(inYAML), code: 200, media: inYAML, text: []string{"kind: ConfigMapList\n"}, fields: []string{"items.0.metadata.name=a"}},
	{name: "YAML: an error", request: "GET " + configMaps + "/none", headers: accept(inYAML), code: 404, media: inYAML, message: `configmaps "none" not found`},
	{name: "YAML: in and out", request: "POST " + configMaps, headers: sends(inYAML, inYAML), body: "metadata:\n  name: yaml\ndata:\n  key: \"1\"\n", code: 201, media: inYAML, fields: []string{"data.key=1"}},
	{name: "YAML: JSON is YAML", request: "PUT " + configMaps + "/yaml", headers: sends(inYAML, inJSON), body: configMap("yaml", "2"), code: 200, fields: []string{"data.key=2"}},
	{name: "YAML: with a document marker", request: "PUT " + configMaps + "/yaml", headers: sends(inYAML, inJSON), body: "---\nmetadata:\n  name: yaml\n", code: 200, fields: []string{"data="}},
	{name: "YAML: is no JSON", request: "POST " + configMaps, headers: sends(inJSON, inJSON), body: "metadata:\n  name: z\n", code: 400},
	{name: "YAML: DeleteOptions", request: "DELETE " + configMaps + "/yaml", headers: sends(inYAML, inYAML), body: "kind: DeleteOptions\napiVersion: v1\npropagationPolicy: Background\n", code: 200, media: inYAML, fields: []string{"status=Success"}},
}

var protobufRows = []encoding{
	{name: "protobuf: begins with k8s and a zero byte", request: "GET " + configMaps + "/a", headers: accept(inProtobuf), code: 200, media: inProtobuf, text: []string{"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12"}, fields: []string{"kind=ConfigMap", "apiVersion=v1", "data.key=<&> ü"}},
	{name: "protobuf: a list", request: "GET " + configMaps + "?labelSelector=l", headers: accept(inProtobuf), code: 200, media: inProtobuf, fields: []string{"kind=ConfigMapList", "items.0.metadata.name=a"}},
	{name: "protobuf: a large list", request: "GET " + configMaps, headers: accept(inProtobuf), code: 200, media: inProtobuf, fields: []string{"items.0.metadata.name=a", "items.1.metadata.name=big"}},
	{name: "protobuf: a list without items", request: "GET /api/v1/namespaces/none/configmaps", headers: accept(inProtobuf), code: 200, media: inProtobuf, fields: []string{"kind=ConfigMapList", "items="}},
	{name: "protobuf: a page", request: "GET " + configMaps + "?limit=1", headers: accept(inProtobuf), code: 200, media: inProtobuf, fields: []string{"metadata.remainingItemCount=1"}},
	{name: "protobuf: an error", request: "GET " + configMaps + "/none", headers: accept(inProtobuf), code: 404, media: inProtobuf, message: `configmaps "none" not found`},
	{name: "protobuf: a scale", request: "GET " + deploymentsPath + "/d/scale", headers: accept(inProtobuf), code: 200, media: inProtobuf, fields: []string{"kind=Scale", "apiVersion=autoscaling/v1", "spec.replicas=2"}},
	{name: "protobuf: a review", request: "POST " + reviews, headers: sends(inJSON, inProtobuf), body: review, code: 201, media: inProtobuf, fields: []string{"kind=SelfSubjectAccessReview"}},
	{name: "protobuf: metadata", request: "GET " + configMaps + "/a", headers: accept(metadataOf(inProtobuf, "PartialObjectMetadata", "v1")), code: 200, media: inProtobuf, fields: []string{"kind=PartialObjectMetadata", "apiVersion=meta.k8s.io/v1", "metadata.name=a", "data="}},
	{name: "protobuf: a list of metadata", request: "GET " + configMaps, headers: accept(metadataOf(inProtobuf, "PartialObjectMetadataList", "v1")), code: 200, media: inProtobuf, fields: []string{"kind=PartialObjectMetadataList", "items.1.metadata.name=big"}},
	{name: "protobuf: a list of metadata in v1beta1", request: "GET " + configMaps + "?limit=1", headers: accept(metadataOf(inProtobuf, "PartialObjectMetadataList", "v1beta1")), code: 200, media: inProtobuf, fields: []string{"apiVersion=meta.k8s.io/v1beta1", "items.0.metadata.name=a", "metadata.remainingItemCount=1"}},
	{name: "protobuf: in and out", request: "POST " + configMaps, headers: sends(inProtobuf, inProtobuf), body: toProtobuf(configMap("p", "1")), code: 201, media: inProtobuf, fields: []string{"data.key=1"}},
	{name: "protobuf: in, JSON out", request: "PUT " + configMaps + "/p", headers: sends(inProtobuf, inJSON), body: toProtobuf(configMap("p", "2")), code: 200, fields: []string{"data.key=2"}},
	{name: "protobuf: DeleteOptions", request: "DELETE " + configMaps + "/p", headers: sends(inProtobuf, inProtobuf), body: toProtobuf(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`), code: 200, media: inProtobuf, fields: []string{"kind=Status", "status=Success"}},
	{name: "protobuf: of another kind", request: "POST " + configMaps, headers: sends(inProtobuf, inJSON), body: toProtobuf(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"}}`), code: 400, message: `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
	{name: "protobuf: without the envelope", request: "POST " + configMaps, headers: sends(inProtobuf, inJSON), body: "garbage", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (67617262616765)"},
	{name: "protobuf: nothing in the envelope", request: "POST " + configMaps, headers: sends(inProtobuf, inJSON), body: "k8s\x00", code: 400, message: "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"},
	{name: "protobuf: there is no table", request: "GET " + configMaps, headers: accept(inProtobuf + ";as=Table;v=v1;g=meta.k8s.io"), code: 406, message: handlerRefuses},
}

var negotiationRows = []encoding{
	{name: "several: the first that is there", request: "GET " + configMaps + "/a", headers: accept("text/html", inYAML, inJSON), code: 200, media: inYAML},
	{name: "several: the highest q", request: "GET " + configMaps + "/a", headers: accept(inYAML+";q=0.2", inJSON+";q=0.1", inProtobuf+";q=0.9"), code: 200, media: inProtobuf},
	{name: "several: without q before less", request: "GET " + configMaps + "/a", headers: accept(inYAML+";q=0.9", inJSON), code: 200},
	{name: "several: CBOR with JSON as the fallback", request: "GET " + configMaps + "/a", headers: accept("application/cbor", inJSON+";q=0.5"), code: 200},
	{name: "several: a table, else JSON (kubectl)", request: "GET " + configMaps, headers: accept(tableV1, tableV1beta1, inJSON), code: 200, fields: []string{"kind=Table", "apiVersion=meta.k8s.io/v1"}},
	{name: "several: a table of a version that is not there, else JSON", request: "GET " + configMaps, headers: accept("application/json;as=Table;v=v2;g=meta.k8s.io", inJSON), code: 200, fields: []string{"kind=ConfigMapList"}},
	{name: "several: a table of what has none, else JSON", request: "POST " + reviews, headers: sends(inJSON, tableV1+","+inJSON), body: review, code: 201, fields: []string{"kind=SelfSubjectAccessReview"}},
	{name: "several: protobuf tables are not there, JSON ones are", request: "GET " + configMaps, headers: accept(inProtobuf+";as=Table;v=v1;g=meta.k8s.io", tableV1), code: 200, fields: []string{"kind=Table"}},
	{name: "several: anything as the fallback", request: "GET " + configMaps + "/a", headers: accept("text/html", "*/*;q=0.1"), code: 200},
	{name: "several: wildcards come last, whatever their q", request: "GET " + configMaps + "/a", headers: accept("*/*", inYAML+";q=0.1"), code: 200, media: inYAML},
	{name: "several: application/* beside what the router knows", request: "GET " + configMaps + "/a", headers: accept("application/*;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Nothing"), code: 200, fields: []string{"kind=Table"}},
}

var refusedRows = []encoding{
	{name: "406: unknown media type", request: "GET " + configMaps + "/a", headers: accept("text/html"), code: 406, message: routerRefuses, fields: []string{"reason=NotAcceptable", "details={}"}, text: []string{indented}},
	{name: "406: of a list", request: "GET " + configMaps, headers: accept("text/html"), code: 406, message: listsRouterRefuses},
	{name: "406: of a watch", request: "GET " + configMaps + "?watch=1", headers: accept("text/html"), code: 406, message: listsRouterRefuses},
	{name: "406: CBOR", request: "GET " + configMaps + "/a", headers: accept("application/cbor"), code: 406, message: routerRefuses},
	{name: "406: application/*", request: "GET " + configMaps + "/a", headers: accept("application/*"), code: 406, message: routerRefuses},
	{name: "406: media types are in small letters", request: "GET " + configMaps + "/a", headers: accept("APPLICATION/JSON"), code: 406, message: routerRefuses},
	{name: "406: a write, which then does not happen", request: "POST " + configMaps, headers: accept("text/html"), body: configMap("never", "1"), code: 406, message: routerRefuses},
	{name: "and it did not happen", request: "GET " + configMaps + "/never", code: 404},
	{name: "406: a form that is not there", request: "GET " + configMaps, headers: accept("application/json;as=Nothing;v=v1;g=meta.k8s.io"), code: 406, message: handlerRefuses, fields: []string{"reason=NotAcceptable", "details="}},
	{name: "406: a table of a version that is not there", request: "GET " + configMaps, headers: accept("application/json;as=Table;v=v1alpha1;g=meta.k8s.io"), code: 406, message: handlerRefuses},
	{name: "406: a table without a group", request: "GET " + configMaps, headers: accept("application/json;as=Table;v=v1"), code: 406, message: handlerRefuses},
	{name: "406: a table of a review", request: "POST " + reviews, headers: sends(inJSON, tableV1), body: review, code: 406, message: handlerRefuses},
	{name: "406: a stream that is not there", request: "GET " + configMaps, headers: accept("application/json;stream=other"), code: 406, message: handlerRefuses},
	{name: "406: a watch in YAML", request: "GET " + configMaps + "?watch=1", headers: accept(inYAML), code: 406, media: inYAML, message: "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
	{name: "406: what is wrong with a list's parameters comes before its form", request: "GET " + configMaps + "?limit=x", headers: accept("application/json;as=Nothing;v=v1;g=meta.k8s.io"), code: 400},
	{name: "406: but after the router's look at Accept", request: "GET " + configMaps + "?limit=x", headers: accept("text/html"), code: 406, message: listsRouterRefuses},
	{name: "406: of the router, without the warning of a deprecated version", request: "GET /api/v1/namespaces/default/endpoints", headers: accept("text/html"), code: 406, head: []string{"Warning="}},
	{name: "406: of the handler, with it", request: "GET /api/v1/namespaces/default/endpoints", headers: accept("application/json;as=Nothing"), code: 406, head: []string{`Warning=299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`}},
	{name: "406: a method that is not there comes first", request: "POST " + configMaps + "/a", headers: accept("text/html"), body: "{}", code: 405},
	{name: "errors: in YAML if that is accepted", request: "POST " + configMaps, headers: accept(inYAML), body: "{", code: 400, media: inYAML, fields: []string{"reason=BadRequest"}},
	{name: "errors: a table has none, so JSON for human eyes", request: "GET " + configMaps + "/none", headers: accept(tableV1), code: 404, message: `configmaps "none" not found`, text: []string{indented}},
	{name: "errors: nor has metadata", request: "GET " + configMaps + "/none", headers: accept(metadataOf(inJSON, "PartialObjectMetadata", "v1")), code: 404, text: []string{indented}},
}

var tableRows = []encoding{
	{name: "tables: a list", request: "GET " + configMaps, headers: accept(tableV1), code: 200, fields: []string{"kind=Table", "apiVersion=meta.k8s.io/v1", "columnDefinitions.0.name=Name", "columnDefinitions.1.name=Data", "columnDefinitions.2.type=string", "rows.0.cells.0=a", "rows.1.cells.0=big", "rows.0.cells.1=1"}},
	{name: "tables: v1beta1", request: "GET " + configMaps, headers: accept(tableV1beta1), code: 200, fields: []string{"kind=Table", "apiVersion=meta.k8s.io/v1beta1", "rows.0.object.apiVersion=meta.k8s.io/v1beta1"}},
	{name: "tables: an object", request: "GET " + deploymentsPath + "/d", headers: accept(tableV1), code: 200, fields: []string{"kind=Table", "rows.0.cells.1=0/2", "rows.1="}},
	{name: "tables: in YAML", request: "GET " + configMaps, headers: accept("application/yaml;as=Table;v=v1;g=meta.k8s.io"), code: 200, media: inYAML, fields: []string{"kind=Table", "rows.0.cells.0=a"}},
	{name: "tables: anything as a table", request: "GET " + configMaps, headers: accept("*/*;as=Table;v=v1;g=meta.k8s.io"), code: 200, fields: []string{"kind=Table"}},
	{name: "tables: without rows", request: "GET /api/v1/namespaces/none/configmaps", headers: accept(tableV1), code: 200, fields: []string{"columnDefinitions.0.name=Name", "rows=[]"}},
	{name: "tables: without rows, of the default columns", request: "GET /api/v1/namespaces/none/limitranges", headers: accept(tableV1), code: 200, fields: []string{"columnDefinitions.1.name=Created At"}, text: []string{`"rows":null`}},
	{name: "tables: of a subresource that has none", request: "GET /api/v1/namespaces/default/pods/p/resize", headers: accept(tableV1), code: 406, message: handlerRefuses},
	{name: "tables: a page", request: "GET " + configMaps + "?limit=1", headers: accept(tableV1), code: 200, fields: []string{"metadata.remainingItemCount=1", "rows.1="}},
	{name: "tables: includeObject is Metadata by default", request: "GET " + configMaps, headers: accept(tableV1), code: 200, fields: []string{"rows.0.object.kind=PartialObjectMetadata", "rows.0.object.metadata.name=a", "rows.0.object.data="}},
	{name: "tables: includeObject=Metadata", request: "GET " + configMaps + "?includeObject=Metadata", headers: accept(tableV1), code: 200, fields: []string{"rows.0.object.kind=PartialObjectMetadata"}},
	{name: "tables: includeObject=Object", request: "GET " + configMaps + "?includeObject=Object", headers: accept(tableV1), code: 200, fields: []string{"rows.0.object.kind=ConfigMap", "rows.0.object.apiVersion=v1", "rows.0.object.data.key=<&> ü"}},
	{name: "tables: includeObject=None", request: "GET " + configMaps + "?includeObject=None", headers: accept(tableV1), code: 200, fields: []string{"rows.0.object="}},
	{name: "tables: includeObject=nonsense", request: "GET " + configMaps + "?includeObject=Some", headers: accept(tableV1), code: 400, message: badInclude},
	{name: "tables: includeObject=nonsense of a watch", request: "GET " + configMaps + "?watch=1&includeObject=Some", headers: accept(tableV1), code: 400, message: badInclude},
	{name: "tables: includeObject says nothing without a table", request: "GET " + configMaps + "?includeObject=Some", code: 200, fields: []string{"kind=ConfigMapList"}},
	{name: "tables: noHeaders is no parameter of a request", request: "GET " + configMaps + "?noHeaders=true", headers: accept(tableV1), code: 200, fields: []string{"columnDefinitions.0.name=Name"}},
	{name: "tables: a scale", request: "GET " + deploymentsPath + "/d/scale", headers: accept(tableV1), code: 200, fields: []string{"columnDefinitions.1.name=Desired", "rows.0.cells.1=2", "rows.0.object.metadata.name=d"}},
	{name: "tables: a scale with its object", request: "GET " + deploymentsPath + "/d/scale?includeObject=Object", headers: accept(tableV1), code: 200, fields: []string{"rows.0.object.kind=Scale"}},
	{name: "tables: a status", request: "GET " + deploymentsPath + "/d/status", headers: accept(tableV1), code: 200, fields: []string{"kind=Table", "rows.0.cells.0=d"}},
	{name: "tables: of a write", request: "POST " + configMaps, headers: accept(tableV1), body: configMap("t", "1"), code: 201, fields: []string{"kind=Table", "rows.0.cells.0=t"}},
	{name: "tables: a write whose table cannot be made has happened", request: "PUT " + configMaps + "/t?includeObject=Some", headers: accept(tableV1), body: configMap("t", "2"), code: 400, message: badInclude},
	{name: "and it has", request: "GET " + configMaps + "/t", code: 200, fields: []string{"data.key=2"}},
	{name: "tables: a Status has none", request: "DELETE " + configMaps + "/t", headers: accept(tableV1), code: 200, fields: []string{"kind=Status", "status=Success"}},
}

var metadataRows = []encoding{
	{name: "metadata: an object", request: "GET " + configMaps + "/a", headers: accept(metadataOf(inJSON, "PartialObjectMetadata", "v1")), code: 200, fields: []string{"kind=PartialObjectMetadata", "apiVersion=meta.k8s.io/v1", "metadata.labels.l=1", "data="}},
	{name: "metadata: v1beta1", request: "GET " + configMaps + "/a", headers: accept(metadataOf(inJSON, "PartialObjectMetadata", "v1beta1")), code: 200, fields: []string{"apiVersion=meta.k8s.io/v1beta1"}},
	{name: "metadata: a list", request: "GET " + configMaps, headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, fields: []string{"kind=PartialObjectMetadataList", "apiVersion=meta.k8s.io/v1", "items.0.kind=PartialObjectMetadata", "items.0.apiVersion=meta.k8s.io/v1", "items.1.metadata.name=big", "items.1.data="}},
	{name: "metadata: a list in v1beta1", request: "GET " + configMaps, headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1beta1")), code: 200, fields: []string{"apiVersion=meta.k8s.io/v1beta1", "items.0.apiVersion=meta.k8s.io/v1beta1"}},
	{name: "metadata: a list without items has null", request: "GET /api/v1/namespaces/none/configmaps", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, text: []string{`,"items":null}`}},
	{name: "metadata: in YAML", request: "GET " + configMaps + "/a", headers: accept(metadataOf(inYAML, "PartialObjectMetadata", "v1")), code: 200, media: inYAML, fields: []string{"kind=PartialObjectMetadata"}},
	{name: "metadata: a page", request: "GET " + configMaps + "?limit=1", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, fields: []string{"metadata.remainingItemCount=1", "items.1="}},
	{name: "metadata: a scale", request: "GET " + deploymentsPath + "/d/scale", headers: accept(metadataOf(inJSON, "PartialObjectMetadata", "v1")), code: 200, fields: []string{"kind=PartialObjectMetadata", "metadata.name=d", "spec="}},
	{name: "metadata: a DaemonSet has an annotation", request: "POST /apis/apps/v1/namespaces/default/daemonsets", body: strings.Replace(deployment, `"replicas":2,`, "", 1), code: 201, text: []string{`"deprecated.daemonset.template.generation":"1"`}},
	{name: "metadata: but its metadata has not", request: "GET /apis/apps/v1/namespaces/default/daemonsets", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, fields: []string{"items.0.metadata.name=d", "items.0.metadata.generation=1", "items.0.metadata.annotations="}},
	{name: "metadata: a review", request: "POST " + reviews, headers: sends(inJSON, metadataOf(inJSON, "PartialObjectMetadata", "v1")), body: review, code: 201, fields: []string{"kind=PartialObjectMetadata", "status="}},
	{name: "metadata: a list is no object", request: "GET " + configMaps, headers: accept(metadataOf(inJSON, "PartialObjectMetadata", "v1")), code: 406, message: "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
	{name: "metadata: an object is no list", request: "GET " + deploymentsPath + "/d", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 406, message: "you requested PartialObjectMetadataList, but the requested object is not a list (*apps.Deployment)"},
	{name: "metadata: a scale is no list", request: "GET " + deploymentsPath + "/d/scale", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 406, message: "you requested PartialObjectMetadataList, but the requested object is not a list (*autoscaling.Scale)"},
	{name: "metadata: a write whose form does not fit has happened", request: "POST " + configMaps, headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), body: configMap("m", "1"), code: 406, message: "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"},
	{name: "and it has happened", request: "GET " + configMaps + "/m", code: 200},
	{name: "metadata: a Status fits any form", request: "DELETE " + configMaps + "/m", headers: accept(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, fields: []string{"kind=Status", "status=Success"}},
}

var inputRows = []encoding{
	{name: "415: unknown Content-Type", request: "POST " + configMaps, headers: sends("text/plain", inJSON), body: configMap("x", "1"), code: 415, message: bodyRefused, fields: []string{"reason=UnsupportedMediaType", "details="}},
	{name: "415: of an update", request: "PUT " + configMaps + "/a", headers: sends("text/plain", inJSON), body: configMap("a", "1"), code: 415, message: bodyRefused},
	{name: "415: of DeleteOptions", request: "DELETE " + configMaps + "/a", headers: sends("text/plain", inJSON), body: "{}", code: 415, message: bodyRefused},
	{name: "415: of a review", request: "POST " + reviews, headers: sends("text/plain", inJSON), body: review, code: 415, message: bodyRefused},
	{name: "415: CBOR", request: "POST " + configMaps, headers: sends("application/cbor", inJSON), body: "\xd9\xd9\xf7\xa0", code: 415, message: bodyRefused},
	{name: "415: what Accept may have, Content-Type may not", request: "POST " + configMaps, headers: sends("*/*", inJSON), body: "{}", code: 415, message: bodyRefused},
	{name: "415: no media type at all", request: "POST " + configMaps, headers: sends("a/b/c", inJSON), body: "{}", code: 415, message: bodyRefused},
	{name: "415: a create's, before its options are read", request: "POST " + configMaps + "?dryRun=Some", headers: sends("text/plain", inJSON), body: "x", code: 415, message: bodyRefused},
	{name: "415: an update's, after", request: "PUT " + configMaps + "/a?dryRun=Some", headers: sends("text/plain", inJSON), body: "x", code: 422},
	{name: "413: before the options are read", request: "PUT " + configMaps + "/a?dryRun=Some", headers: sends(inJSON, inJSON), body: strings.Repeat(" ", 1<<20+1), code: 413},
	{name: "415: a patch as plain JSON", request: "PATCH " + configMaps + "/a", headers: sends(inJSON, inJSON), body: "{}", code: 415, message: "415: Unsupported Media Type", fields: []string{"details={}"}},
	{name: "415: before 406", request: "PATCH " + configMaps + "/a", headers: sends(inJSON, "text/html"), body: "{}", code: 415, message: "415: Unsupported Media Type"},
	{name: "input: JSON without a Content-Type", request: "PUT " + configMaps + "/a?dryRun=All", body: configMap("a", "1"), code: 200},
	{name: "input: a charset changes nothing", request: "PUT " + configMaps + "/a?dryRun=All", headers: sends("application/json; charset=utf-8", inJSON), body: configMap("a", "1"), code: 200},
	{name: "input: in large letters", request: "PUT " + configMaps + "/a?dryRun=All", headers: sends("APPLICATION/JSON", inJSON), body: configMap("a", "1"), code: 200},
	{name: "input: a Content-Type without a body", request: "DELETE " + configMaps + "/a?dryRun=All", headers: sends("text/plain", inJSON), code: 200},
	{name: "input: the Content-Type of a get is nobody's business", request: "GET " + configMaps + "/a", headers: sends("text/plain", inJSON), code: 200},
}

// gzipped is what a compressed body begins with.
const gzipped = "\x1f\x8b\x08"

func unpacked(media ...string) []string {
	return append(accept(media...), "Accept-Encoding", "gzip")
}

var compressionRows = []encoding{
	{name: "gzip: a large object", request: "GET " + configMaps + "/big", headers: unpacked(inJSON), code: 200, text: []string{gzipped}},
	{name: "gzip: a large list", request: "GET " + configMaps, headers: unpacked(inJSON), code: 200, text: []string{gzipped}},
	{name: "gzip: a large object in YAML", request: "GET " + configMaps + "/big", headers: unpacked(inYAML), code: 200, media: inYAML, text: []string{gzipped}},
	{name: "gzip: a large object in protobuf", request: "GET " + configMaps + "/big", headers: unpacked(inProtobuf), code: 200, media: inProtobuf, text: []string{gzipped}},
	{name: "gzip: a large list in protobuf", request: "GET " + configMaps, headers: unpacked(inProtobuf), code: 200, media: inProtobuf, text: []string{gzipped}},
	{name: "gzip: a large write", request: "PUT " + configMaps + "/big?dryRun=All", headers: unpacked(inJSON), body: configMap("big", strings.Repeat("y", 140_000)), code: 200, text: []string{gzipped}},
	{name: "gzip: a large error", request: "POST " + configMaps, headers: unpacked(inJSON), body: configMap(strings.Repeat("N", 140_000), "1"), code: 422, text: []string{gzipped}},
	{name: "gzip: not up to 128 KiB", request: "GET " + configMaps + "/a", headers: unpacked(inJSON), code: 200, fields: []string{"kind=ConfigMap"}},
	{name: "gzip: not the little metadata of large objects", request: "GET " + configMaps, headers: unpacked(metadataOf(inJSON, "PartialObjectMetadataList", "v1")), code: 200, fields: []string{"items.1.metadata.name=big"}},
	{name: "gzip: not for those who don't accept it", request: "GET " + configMaps + "/big", headers: []string{"Accept-Encoding", "deflate, br"}, code: 200, fields: []string{"kind=ConfigMap"}},
	{name: "gzip: in letters of any case", request: "GET " + configMaps + "/big", headers: []string{"Accept-Encoding", "GZIP"}, code: 200, text: []string{gzipped}},
	{name: "gzip: not for those who refuse it", request: "GET " + configMaps + "/big", headers: []string{"Accept-Encoding", "gzip;q=0"}, code: 200, fields: []string{"kind=ConfigMap"}},
	{name: "gzip: among others", request: "GET " + configMaps + "/big", headers: []string{"Accept-Encoding", "deflate, gzip"}, code: 200, text: []string{gzipped}},
	{name: "gzip: with a weight", request: "GET " + configMaps + "/big", headers: []string{"Accept-Encoding", "gzip;q=0.5"}, code: 200, text: []string{gzipped}},
}
