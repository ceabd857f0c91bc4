package rest_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/rest"
)

// TestDeleteOptionsOfClients sends DeleteOptions as client-go does, in each encoding.
func TestDeleteOptionsOfClients(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(media, func(t *testing.T) {
			clients, err := kubernetes.NewForConfig(&clientrest.Config{
				Host: h.http.URL, ContentConfig: clientrest.ContentConfig{ContentType: media},
			})
			if err != nil {
				t.Fatal(err)
			}
			maps := clients.CoreV1().ConfigMaps("default")
			h.do("POST", configMaps, configMap("a", "1")).want(201)
			wrong, foreground := types.UID("x"), metav1.DeletePropagationForeground
			err = maps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
			if err == nil || !strings.Contains(err.Error(), "the UID in the precondition (x)") {
				t.Errorf("a wrong uid: %v", err)
			}
			if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Error(err)
			}
			if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Error(err)
			}
			if a := h.do("GET", configMaps+"/a", "").want(200); a.get("metadata", "finalizers") != `["foregroundDeletion"]` {
				t.Errorf("foreground: %s", a.body)
			}
			background := metav1.DeletePropagationBackground
			err = maps.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{FieldSelector: "metadata.name=a"})
			if err != nil {
				t.Error(err)
			}
			h.do("GET", configMaps+"/a", "").want(404)
		})
	}
}

// TestDeleteOptions sends DeleteOptions in the body or in the query.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/
func TestDeleteOptions(t *testing.T) { playEach(t, awayOnPostgres, deleteOptionsRows) }

var deleteOptionsRows = []namedScript{
	{"DeleteOptions of any group and version, without any, and in YAML", `
		POST configmaps {"metadata":{"name":"a","finalizers":["x.io/a"]}}
		201 ConfigMap
		DELETE configmaps/a {"apiVersion":"v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"batch/v1","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {"apiVersion":"nowhere.io/v9","kind":"DeleteOptions"}
		200 ConfigMap
		DELETE configmaps/a {}
		200 ConfigMap
		DELETE configmaps/a null
		200 ConfigMap
		DELETE configmaps/a Content-Type:application/yaml kind: DeleteOptions\npropagationPolicy: Orphan\n
		200 ConfigMap metadata.finalizers=["x.io/a","orphan"]
		DELETE configmaps/a {"nope":1}
		200 ConfigMap metadata.finalizers=["x.io/a","orphan"]`},
	{"a body of another kind", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {"apiVersion":"v1","kind":"CreateOptions"}
		400 BadRequest: converting (v1.CreateOptions) to (v1.DeleteOptions): unknown conversion
		DELETE configmaps/a {"apiVersion":"v1","kind":"Status"}
		400 BadRequest: converting (v1.Status) to (v1.DeleteOptions): unknown conversion`},
	{"an invalid body", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a {
		400 BadRequest: couldn't get version/kind; json parse error: unexpected end of JSON input
		DELETE configmaps/a {"gracePeriodSeconds":"x"}
		400 BadRequest: json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64
		DELETE configmaps/a {"dryRun":"All"}
		400 BadRequest: json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string
		DELETE configmaps/a Content-Type:application/vnd.kubernetes.protobuf xx
		400 BadRequest: provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]
		DELETE configmaps/a Content-Type:text/plain {}
		415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
	{"an unknown propagation policy", `
		DELETE configmaps/a {"propagationPolicy":"Later"}
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Later": supported values: "Foreground", "Background", "Orphan", "nil"
		DELETE configmaps/a?propagationPolicy=foreground
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "foreground": supported values: "Foreground", "Background", "Orphan", "nil"
		DELETE configmaps/a?propagationPolicy=
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": supported values: "Foreground", "Background", "Orphan", "nil"`},
	{"orphanDependents and propagationPolicy exclude each other", `
		DELETE configmaps/a {"propagationPolicy":"Background","orphanDependents":true}
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set
		DELETE configmaps/a?orphanDependents=true&propagationPolicy=Orphan
		422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set`},
	{"an invalid query", `
		DELETE configmaps/a?gracePeriodSeconds=x
		400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax
		DELETE configmaps/a?gracePeriodSeconds=1.5
		400 BadRequest: strconv.ParseInt: parsing "1.5": invalid syntax`},
	{"a body takes precedence over the query", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?propagationPolicy=Orphan {"propagationPolicy":"Background"}
		200 Status status=Success`},
	{"unknown parameters are ignored", `
		POST configmaps {"metadata":{"name":"a"}}
		201 ConfigMap
		DELETE configmaps/a?nope=1&pretty=true&fieldManager=x&timeout=5s&preconditions.uid=x
		200 Status status=Success`},
	{"system priority classes cannot be deleted", `
		DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical
		403 Forbidden: priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted
		DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical?propagationPolicy=Orphan
		403 Forbidden: priorityclasses.scheduling.k8s.io "system-cluster-critical" is forbidden: this is a system priority class and cannot be deleted`},
}
