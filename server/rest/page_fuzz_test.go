package rest_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

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
