package rest_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// conversionCase is a definition whose objects are stored in v1beta1, and converted by a
// webhook to v1.
type conversionCase struct {
	*harness
	hook *hook
}

const (
	hooked     = "/apis/hooks.example.com/v1/namespaces/default/hooks"
	hookedBeta = "/apis/hooks.example.com/v1beta1/namespaces/default/hooks"
	hookedName = definitionsPath + "/hooks.hooks.example.com"
)

func (c conversionCase) define(reviews string) {
	c.t.Helper()
	version := func(name string, storage bool, spec string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"subresources":{"status":{}},
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}`, name, storage, spec)
	}
	c.harness.define(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hooks.hooks.example.com"},
		"spec":{"group":"hooks.example.com","scope":"Namespaced","names":{"plural":"hooks","kind":"Hook"},
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":[` + reviews + `],
			"clientConfig":{"url":"` + c.hook.URL + `/ok","caBundle":"` + c.hook.bundle() + `"}}},
		"versions":[` + version("v1", false, `"host":{"type":"string"},"port":{"type":"string"},"d1":{"type":"string","default":"one"}`) +
		`,"selectableFields":[{"jsonPath":".spec.host"}],"additionalPrinterColumns":[{"name":"Host","type":"string","jsonPath":".spec.host"}]},` +
		version("v1beta1", true, `"hostPort":{"type":"string"},"db":{"type":"string","default":"beta"}`) + `}]}}`)
}

// mode changes what the webhook does, and waits until the definition's Kinds know.
func (c conversionCase) mode(mode string) {
	c.t.Helper()
	old := c.kinds.Lookup("hooks.example.com", "v1", "hooks")
	c.do("PATCH", hookedName, `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/url","value":"`+c.hook.URL+"/"+mode+`"}]`,
		"Content-Type", "application/json-patch+json").want(200)
	c.until(mode, func() bool { return c.kinds.Lookup("hooks.example.com", "v1", "hooks") != old })
	c.hook.called()
}

func hookObject(version, name, spec string) string {
	return `{"apiVersion":"hooks.example.com/` + version + `","kind":"Hook","metadata":{"name":"` + name + `","labels":{"l":"1"}},"spec":{` + spec + `}}`
}

func (c conversionCase) calls(what string, want ...int) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.hook.called()); diff != "" {
		c.t.Errorf("%s: calls and their objects: %s", what, diff)
	}
}

func newConversionCase(t *testing.T, h *harness) conversionCase {
	own := *h
	own.t = t
	own.serveDefinitions()
	return conversionCase{&own, newHook(t)}
}

// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
func TestConversionWebhook(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		// Objects stay in memory, and with them what was made of them.
		h := newHarnessWith(t, d.Fresh(t), sqlstore.Options{StateBytes: 1 << 30}, rest.Options{})
		c := newConversionCase(t, h)
		c.define(`"v1","v1beta1"`)
		c.do("POST", hookedBeta, hookObject("v1beta1", "a", `"hostPort":"h:1"`)).want(201)
		c.calls("what is written and read in the stored version is not converted")
		c.do("GET", hookedBeta+"/a", "").want(200)
		c.do("GET", hookedBeta, "").want(200)
		c.calls("nor when it is read")
		a := c.do("GET", hooked+"/a", "").want(200)
		if got := a.get("spec"); got != `{"host":"h","port":"1"}` {
			t.Errorf("spec is %s: it has no defaults of the other version", got)
		}
		c.calls("get", 1)
		c.do("GET", hooked+"/a", "").want(200)
		c.do("GET", hooked, "").want(200)
		c.calls("an object is converted once")
		a = c.do("POST", hooked, hookObject("v1", "b", `"host":"g","port":"2"`)).want(201)
		if got := a.get("spec"); got != `{"host":"g","port":"2"}` {
			t.Errorf("spec is %s", got)
		}
		c.calls("create", 1, 1)
		if got := c.do("GET", hookedBeta+"/b", "").want(200).get("spec"); got != `{"db":"beta","hostPort":"g:2"}` {
			t.Errorf("stored spec is %s", got)
		}
		for i := range 30 {
			c.do("POST", hookedBeta, hookObject("v1beta1", fmt.Sprintf("c%02d", i), `"hostPort":"x:9"`)).want(201)
		}
		c.hook.called()
		c.do("GET", hooked+"?limit=12", "").want(200)
		c.calls("a page is converted in one call, except for what is converted already", 10)
		a = c.do("GET", hooked+"?fieldSelector=spec.host%3Dg", "").want(200)
		if a.get("items", "0", "metadata", "name") != "b" || a.get("items", "1") != "" {
			t.Errorf("selected %s", a.body)
		}
		c.calls("a selection looks at all", 20)
		a = c.do("GET", hooked+"/b", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").want(200)
		if got := a.get("rows", "0", "cells"); got != `["b","g"]` {
			t.Errorf("row %s", got)
		}
		a = c.do("PATCH", hooked+"/b?fieldManager=m&force=true", hookObject("v1", "b", `"host":"k"`), "Content-Type", "application/apply-patch+yaml").want(200)
		if got := a.get("spec"); got != `{"host":"k","port":"2"}` {
			t.Errorf("applied %s", got)
		}
		c.hook.called()
		c.mode("ok2")
		c.do("DELETE", hooked, "").want(200)
		if calls := c.hook.called(); len(calls) == 0 || calls[0] != 32 {
			t.Errorf("deletecollection: calls %v", calls)
		}
	})
}

// TestConversionOfWatches wants a thousand watches of an object to convert it once.
func TestConversionOfWatches(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		c := newConversionCase(t, h)
		c.define(`"v1"`)
		const watches = 20
		var reading sync.WaitGroup
		ready := make(chan struct{}, watches)
		for range watches {
			resp, err := http.Get(c.http.URL + hooked + "?watch=1&timeoutSeconds=300&labelSelector=l")
			if err != nil {
				t.Fatal(err)
			}
			reading.Go(func() {
				defer resp.Body.Close()
				ready <- struct{}{}
				lines := bufio.NewScanner(resp.Body)
				for _, want := range []string{`{"type":"ADDED"`, `{"type":"MODIFIED"`, `{"type":"DELETED"`} {
					if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) || !strings.Contains(lines.Text(), `"host":"`) {
						t.Errorf("want %s, got %s", want, lines.Text())
						return
					}
				}
			})
		}
		for range watches {
			<-ready
		}
		c.do("POST", hookedBeta, hookObject("v1beta1", "a", `"hostPort":"h:1"`)).want(201)
		c.do("PATCH", hookedBeta+"/a", `{"spec":{"hostPort":"h:2"}}`, "Content-Type", "application/merge-patch+json").want(200)
		c.do("PATCH", hookedBeta+"/a", `{"metadata":{"labels":null}}`, "Content-Type", "application/merge-patch+json").want(200)
		reading.Wait()
		if calls := c.hook.called(); len(calls) > 3 {
			t.Errorf("%d calls for three events and %d watches", len(calls), watches)
		}
	})
}

// badHooks are webhooks that fail, and the message of the answer. GET and POST in v1 fail
// in the same words but for the version that is converted.
var badHooks = []struct{ mode, want string }{
	{"uid", `returned invalid object: must have the same UID`},
	{"name", `returned invalid object: must have the same name: `},
	{"namespace", `returned invalid object: must have the same namespace: default != other`},
	{"kind", `returned invalid object at index 0: invalid kind (expected Hook, received Other)`},
	{"version", `returned invalid object at index 0: invalid groupVersion (expected hooks.example.com/`},
	{"metadata", `returned invalid object: must have the same name: `},
	{"text", `returned invalid object: must have the same name: `},
	{"badlabels", `returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters`},
	{"number", `returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object`},
	{"count", `returned 2 objects, expected 1`},
	{"none", `returned 0 objects, expected 1`},
	{"null", ``},
	{"list", ``},
	{"fail", `failed: no can do`},
	{"mute", `failed: response.result.status was 'Failure', not 'Success'`},
	{"otheruid", `failed: expected response.uid=`},
	{"review", `failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion`},
	{"noresponse", `failed: no response provided`},
	{"garbage", `failed: couldn't get version/kind; json parse error: `},
	{"500", `failed: an error on the server ("boom") has prevented the request from succeeding`},
	{"status", `failed: go away`},
	{"endless", `failed: unexpected error when reading response body. Please retry. Original error: the answer is longer than 33554432 bytes`},
}

func TestBadConversionWebhooks(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		c := newConversionCase(t, h)
		c.define(`"v1"`)
		c.do("POST", hookedBeta, hookObject("v1beta1", "a", `"hostPort":"h:1"`)).want(201)
		for _, row := range badHooks {
			t.Run(row.mode, func(t *testing.T) {
				c := conversionCase{c.harness, c.hook}
				own := *c.harness
				own.t = t
				c.harness = &own
				c.mode(row.mode)
				head := c.store.Revision()
				for _, a := range []answer{
					c.do("GET", hooked+"/a", ""),
					c.do("POST", hooked, hookObject("v1", "b", `"host":"g"`)),
					c.do("PUT", hooked+"/a", hookObject("v1", "a", `"host":"g"`)),
					c.do("DELETE", hooked+"/a", ""),
					c.do("GET", hooked+"?watch=1&timeoutSeconds=1", ""),
				} {
					a.want(500)
					if !strings.Contains(a.get("message"), row.want) || a.get("kind") != "Status" || a.get("reason") != "" {
						t.Errorf("got %s\nwant %s", a.body, row.want)
					}
				}
				if now := c.store.Revision(); now != head {
					t.Errorf("the revision went from %d to %d", head, now)
				}
				c.do("GET", hookedBeta+"/a", "").want(200)
			})
		}
		c.do("DELETE", hookedName, "").want(200)
		c.until("the definition goes although its webhook fails", func() bool { return c.do("GET", hookedName, "").code == 404 })
	})
}

// TestConversionChangesLabels: webhooks may change labels and annotations, but no other metadata.
func TestConversionChangesLabels(t *testing.T) {
	c := newConversionCase(t, newHarness(t, rest.Options{}))
	c.define(`"v1beta1"`)
	c.do("POST", hookedBeta, hookObject("v1beta1", "a", `"hostPort":"h:1"`)).want(201)
	c.mode("labels")
	a := c.do("GET", hooked+"/a", "").want(200)
	if a.get("metadata", "labels") != `{"to":"v1"}` || a.get("metadata", "annotations") != `{"note":"changed"}` {
		t.Errorf("got %s", a.body)
	}
	metadata := []string{"Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
	if a := c.do("GET", hooked+"?labelSelector=to%3Dv1", "", metadata...).want(200); a.get("items", "0", "metadata", "labels") != `{"to":"v1"}` {
		t.Errorf("got %s", a.body)
	}
	if a := c.do("GET", hooked+"?labelSelector=l", "").want(200); a.get("items") != "[]" {
		t.Errorf("got %s", a.body)
	}
	c.mode("rest")
	a = c.do("GET", hooked+"/a", "").want(200)
	if a.get("metadata", "generation") != "1" || a.get("metadata", "finalizers") != "" || a.get("metadata", "managedFields") == "[]" || a.get("bogus") != "" {
		t.Errorf("got %s", a.body)
	}
}

// TestConversionWebhookHangs: a webhook that does not answer delays a request no longer than the
// request's own timeout.
func TestConversionWebhookHangs(t *testing.T) {
	c := newConversionCase(t, newHarness(t, rest.Options{}))
	c.define(`"v1"`)
	c.do("POST", hookedBeta, hookObject("v1beta1", "a", `"hostPort":"h:1"`)).want(201)
	c.mode("hang")
	for _, r := range []struct{ method, path, body string }{
		{"GET", hooked + "/a", ""},
		{"GET", hooked, ""},
		{"POST", hooked, hookObject("v1", "b", `"host":"g"`)},
		{"PATCH", hooked + "/a?fieldManager=m&force=true", hookObject("v1", "a", `"host":"g"`)},
		{"DELETE", hooked + "/a", ""},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		req := httptest.NewRequestWithContext(ctx, r.method, r.path, strings.NewReader(r.body))
		if r.method == "PATCH" {
			req.Header.Set("Content-Type", "application/apply-patch+yaml")
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, req)
		cancel()
		if w.Code != http.StatusGatewayTimeout {
			t.Errorf("%s: got %d %s", r.method, w.Code, w.Body)
		}
	}
	c.mode("ok")
	c.do("GET", hooked+"/a", "").want(200)
}

// hook is a conversion webhook. The last part of the URL's path names its behaviour: "ok", or one
// of the ways in which a webhook can fail.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	calls []int // the number of objects of each
	hang  chan struct{}
}

func newHook(t testing.TB) *hook {
	h := &hook{hang: make(chan struct{})}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(func() {
		close(h.hang)
		h.Close()
	})
	return h
}

// bundle is the caBundle with which the webhook is trusted.
func (h *hook) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}))
}

// called returns the calls since the last time.
func (h *hook) called() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

type document = map[string]any

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mode := path.Base(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	var review struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID               string     `json:"uid"`
			DesiredAPIVersion string     `json:"desiredAPIVersion"`
			Objects           []document `json:"objects"`
		} `json:"request"`
	}
	if err != nil || json.Unmarshal(body, &review) != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.calls = append(h.calls, len(review.Request.Objects))
	h.mu.Unlock()
	converted := []document{}
	for _, o := range review.Request.Objects {
		convertHook(o, review.Request.DesiredAPIVersion)
		if spoil := spoilObject[mode]; spoil != nil {
			spoil(o)
		}
		converted = append(converted, o)
	}
	response := document{"uid": review.Request.UID, "convertedObjects": converted, "result": document{"status": "Success"}}
	answer := document{"kind": review.Kind, "apiVersion": review.APIVersion, "response": response}
	if spoil := spoilAnswer[mode]; spoil != nil {
		spoil(answer, response)
	}
	w.Header().Set("Content-Type", "application/json")
	switch mode {
	case "hang":
		<-h.hang
	case "garbage":
		io.WriteString(w, "not json")
	case "500":
		http.Error(w, "boom", http.StatusInternalServerError)
	case "status":
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","reason":"Forbidden","code":403}`)
	case "endless":
		for spaces := strings.Repeat(" ", 1<<20); err == nil; {
			_, err = io.WriteString(w, spaces)
		}
	default:
		json.NewEncoder(w).Encode(answer)
	}
}

// convertHook converts between v1, which has host and port, and the other versions, which have both
// in one field.
func convertHook(o document, to string) {
	o["apiVersion"] = to
	spec, _ := o["spec"].(document)
	if spec == nil {
		return
	}
	if both, ok := spec["hostPort"].(string); ok && strings.HasSuffix(to, "/v1") {
		host, port, _ := strings.Cut(both, ":")
		delete(spec, "hostPort")
		maps.Copy(spec, document{"host": host, "port": port})
	} else if host, ok := spec["host"].(string); ok && !strings.HasSuffix(to, "/v1") {
		port, _ := spec["port"].(string)
		delete(spec, "host")
		delete(spec, "port")
		spec["hostPort"] = host + ":" + port
	}
}

func metadataOfHook(o document) document { return o["metadata"].(document) }

// spoilObject has changes of a document that webhooks must not make.
var spoilObject = map[string]func(o document){
	"uid":       func(o document) { metadataOfHook(o)["uid"] = "other" },
	"name":      func(o document) { metadataOfHook(o)["name"] = "other" },
	"namespace": func(o document) { metadataOfHook(o)["namespace"] = "other" },
	"kind":      func(o document) { o["kind"] = "Other" },
	"version":   func(o document) { o["apiVersion"] = "hooks.example.com/v9" },
	"metadata":  func(o document) { delete(o, "metadata") },
	"text":      func(o document) { o["metadata"] = "text" },
	"badlabels": func(o document) { metadataOfHook(o)["labels"] = document{"a b": "c"} },
	"number":    func(o document) { metadataOfHook(o)["labels"] = document{"a": 1} },
	"labels": func(o document) {
		m := metadataOfHook(o)
		m["labels"] = document{"to": path.Base(o["apiVersion"].(string))}
		m["annotations"] = document{"note": "changed"}
	},
	"rest": func(o document) {
		maps.Copy(metadataOfHook(o), document{"generation": 77, "resourceVersion": "1", "finalizers": []string{"a.b/c"}, "managedFields": []any{}})
		o["bogus"] = 1
	},
}

// spoilAnswer has mistakes in the answers of webhooks.
var spoilAnswer = map[string]func(answer, response document){
	"count":      func(_, r document) { r["convertedObjects"] = append(r["convertedObjects"].([]document), document{}) },
	"none":       func(_, r document) { r["convertedObjects"] = []document{} },
	"fail":       func(_, r document) { r["result"] = document{"status": "Failed", "message": "no can do"} },
	"mute":       func(_, r document) { r["result"] = document{"status": "Failure"} },
	"otheruid":   func(_, r document) { r["uid"] = "x" },
	"review":     func(a, _ document) { a["apiVersion"] = "apiextensions.k8s.io/v1beta1" },
	"noresponse": func(a, _ document) { delete(a, "response") },
	"null":       func(_, r document) { r["convertedObjects"] = []any{nil} },
	"list":       func(_, r document) { r["convertedObjects"] = []any{[]any{}} },
}
