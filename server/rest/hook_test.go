package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
)

// hook is a conversion webhook. What it does is the last part of the URL's path: "ok", or
// one of the ways in which a webhook can fail.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	calls []int // how many objects each had
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

// called returns the calls since it was asked last.
func (h *hook) called() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

type object = map[string]any

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mode := path.Base(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	var review struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID               string   `json:"uid"`
			DesiredAPIVersion string   `json:"desiredAPIVersion"`
			Objects           []object `json:"objects"`
		} `json:"request"`
	}
	if err != nil || json.Unmarshal(body, &review) != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.calls = append(h.calls, len(review.Request.Objects))
	h.mu.Unlock()
	converted := []object{}
	for _, o := range review.Request.Objects {
		convertHook(o, review.Request.DesiredAPIVersion)
		if spoil := spoilObject[mode]; spoil != nil {
			spoil(o)
		}
		converted = append(converted, o)
	}
	response := object{"uid": review.Request.UID, "convertedObjects": converted, "result": object{"status": "Success"}}
	answer := object{"kind": review.Kind, "apiVersion": review.APIVersion, "response": response}
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

// convertHook is between v1, which has host and port, and the other versions, which have
// both in one.
func convertHook(o object, to string) {
	o["apiVersion"] = to
	spec, _ := o["spec"].(object)
	if spec == nil {
		return
	}
	if both, ok := spec["hostPort"].(string); ok && strings.HasSuffix(to, "/v1") {
		host, port, _ := strings.Cut(both, ":")
		delete(spec, "hostPort")
		maps.Copy(spec, object{"host": host, "port": port})
	} else if host, ok := spec["host"].(string); ok && !strings.HasSuffix(to, "/v1") {
		port, _ := spec["port"].(string)
		delete(spec, "host")
		delete(spec, "port")
		spec["hostPort"] = host + ":" + port
	}
}

func metadataOfHook(o object) object { return o["metadata"].(object) }

// spoilObject is what webhooks should not do to an object.
var spoilObject = map[string]func(o object){
	"uid":       func(o object) { metadataOfHook(o)["uid"] = "other" },
	"name":      func(o object) { metadataOfHook(o)["name"] = "other" },
	"namespace": func(o object) { metadataOfHook(o)["namespace"] = "other" },
	"kind":      func(o object) { o["kind"] = "Other" },
	"version":   func(o object) { o["apiVersion"] = "hooks.example.com/v9" },
	"metadata":  func(o object) { delete(o, "metadata") },
	"text":      func(o object) { o["metadata"] = "text" },
	"badlabels": func(o object) { metadataOfHook(o)["labels"] = object{"a b": "c"} },
	"number":    func(o object) { metadataOfHook(o)["labels"] = object{"a": 1} },
	"labels": func(o object) {
		m := metadataOfHook(o)
		m["labels"] = object{"to": path.Base(o["apiVersion"].(string))}
		m["annotations"] = object{"note": "changed"}
	},
	"rest": func(o object) {
		maps.Copy(metadataOfHook(o), object{"generation": 77, "resourceVersion": "1", "finalizers": []string{"a.b/c"}, "managedFields": []any{}})
		o["bogus"] = 1
	},
}

// spoilAnswer is what they should not do to their answer.
var spoilAnswer = map[string]func(answer, response object){
	"count":      func(_, r object) { r["convertedObjects"] = append(r["convertedObjects"].([]object), object{}) },
	"none":       func(_, r object) { r["convertedObjects"] = []object{} },
	"fail":       func(_, r object) { r["result"] = object{"status": "Failed", "message": "no can do"} },
	"mute":       func(_, r object) { r["result"] = object{"status": "Failure"} },
	"otheruid":   func(_, r object) { r["uid"] = "x" },
	"review":     func(a, _ object) { a["apiVersion"] = "apiextensions.k8s.io/v1beta1" },
	"noresponse": func(a, _ object) { delete(a, "response") },
	"null":       func(_, r object) { r["convertedObjects"] = []any{nil} },
	"list":       func(_, r object) { r["convertedObjects"] = []any{[]any{}} },
}
