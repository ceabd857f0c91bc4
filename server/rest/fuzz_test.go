package rest_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// checkRefusal fails unless a is a success or a Status that blames the request, and makes
// sure that a refused request left nothing behind.
func checkRefusal(t *testing.T, h *harness, a answer, before int64) {
	t.Helper()
	if a.code < 400 {
		return
	}
	// Without a reason it is what upstream says of some bad input; with one, a fault of ours.
	if a.code >= 500 && a.code != 504 && a.get("reason") != "" {
		t.Fatalf("status %d: %s", a.code, a.body)
	}
	if a.get("kind") != "Status" || a.get("message") == "" {
		t.Fatalf("not a Status: %s", a.body)
	}
	if now := h.store.Revision(); now != before {
		t.Fatalf("a refused request moved the revision from %d to %d", before, now)
	}
}

func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"", "a=b", "a in (b,c),!d", "a notin (", "metadata.name=x", "metadata.name!=x,metadata.namespace=default", "a==b=c", "\x00", "ä=ö", "a>5"} {
		f.Add(s, s)
	}
	h := newHarness(f, rest.Options{})
	h.do("POST", configMaps, configMap("x", "1")).want(201)
	f.Fuzz(func(t *testing.T, labels, fields string) {
		h := *h
		h.t = t
		query := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}}
		a := h.do("GET", configMaps+"?"+query.Encode(), "")
		checkRefusal(t, &h, a, h.store.Revision())
	})
}

func FuzzContinue(f *testing.F) {
	for _, s := range []string{
		`{"v":"meta.k8s.io/v1","rv":1,"start":"x\u0000"}`, `{"v":"meta.k8s.io/v1","rv":-1,"start":"x"}`,
		`{"v":"meta.k8s.io/v1","rv":0,"start":"x"}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/"}`,
		`{"v":"v2","rv":1,"start":"x"}`, `{`, ``,
	} {
		f.Add(s, true, int64(1))
		f.Add(s, false, int64(0))
	}
	h := newHarness(f, rest.Options{FutureWait: 1})
	h.do("POST", configMaps, configMap("x", "1")).want(201)
	h.do("POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"}}`).want(201)
	f.Fuzz(func(t *testing.T, token string, encode bool, limit int64) {
		h := *h
		h.t = t
		if encode {
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		a := h.do("GET", configMaps+"?"+url.Values{"continue": {token}, "limit": {"2"}}.Encode(), "")
		checkRefusal(t, &h, a, h.store.Revision())
		if a.code == 200 && strings.Contains(a.body, `"name":"s"`) {
			t.Fatalf("a token reached another resource: %s", a.body)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		configMap("a", "1"), `{"metadata":{"generateName":"g-"}}`, `{"metadata":null}`, `[]`, `null`, `{"kind":"List"}`, "a: b", "- x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{}]}}`, `[{"op":"add","path":"/data/x","value":"y"}]`,
		`{"data":{"$patch":"replace"}}`, strings.Repeat("[", 10000), strings.Repeat(`{"a":`, 10000), "a: &a [*a]", "k8s\x00\n",
		`{"metadata":{"name":"a","finalizers":[""]}}`, `{"metadata":{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
	} {
		for kind := range uint8(8) {
			f.Add([]byte(s), kind)
		}
	}
	h := newHarness(f, rest.Options{})
	h.do("POST", configMaps, configMap("there", "1")).want(201)
	types := []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
		"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		h := *h
		h.t = t
		before := h.store.Revision()
		method, path, media := "PATCH", configMaps+"/there", types[int(kind)%len(types)]
		switch {
		case kind%8 < 3:
			method, path = "POST", configMaps
		case kind%8 == 6:
			method, media = "PUT", "application/json"
		case kind%8 == 7:
			method, media = "DELETE", "application/json"
			path = configMaps + "/nobody"
		}
		a := h.do(method, path, string(body), "Content-Type", media)
		checkRefusal(t, &h, a, before)
	})
}
