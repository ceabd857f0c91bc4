package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// harness is the verbs on a real store, without the server around them.
type harness struct {
	t     testing.TB
	store *sqlstore.Store
	kinds *kind.Registry
	api   *rest.API
	http  *httptest.Server
}

func newHarness(t testing.TB, o rest.Options) *harness {
	t.Helper()
	return newHarnessOn(t, "sqlite://:memory:", o)
}

// onEachDialect runs test with the verbs on a fresh database of each dialect.
func onEachDialect(t *testing.T, o rest.Options, test func(t *testing.T, h *harness)) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, newHarnessOn(t, d.Fresh(t), o)) })
}

func newHarnessOn(t testing.TB, dsn string, o rest.Options) *harness {
	t.Helper()
	return newHarnessWith(t, dsn, sqlstore.Options{}, o)
}

func newHarnessWith(t testing.TB, dsn string, so sqlstore.Options, o rest.Options) *harness {
	t.Helper()
	ctx := context.Background()
	log, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(ctx, log, so)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, store: store, kinds: kind.NewRegistry(builtin.Priorities())}
	h.api = rest.New(store, h.kinds, o)
	h.http = httptest.NewServer(h)
	h.kinds.Replace(nil, builtin.Kinds(builtin.Options{Store: store, Client: h.client()}))
	t.Cleanup(func() {
		h.api.Drain()
		h.http.Close()
		store.Close()
	})
	return h
}

func (h *harness) client() *clientrest.Config { return &clientrest.Config{Host: h.http.URL, QPS: -1} }

// offerAddresses makes the ServiceCIDR that a server makes when it starts.
func (h *harness) offerAddresses() {
	h.t.Helper()
	h.do("POST", "/apis/networking.k8s.io/v1/servicecidrs", `{"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.96.0.0/12"]}}`).want(201)
}

var paths = apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func (h *harness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := paths.NewRequestInfo(r)
	if err != nil {
		rest.WriteError(w, r, err)
		return
	}
	h.api.Serve(w, r, info, &user.DefaultInfo{Name: "tester", Groups: []string{"system:masters"}})
}

// answer is a response that was read to its end.
type answer struct {
	t    testing.TB
	code int
	head http.Header
	body string
}

// do sends a request; headers are pairs.
func (h *harness) do(method, path, body string, headers ...string) answer {
	h.t.Helper()
	req, err := http.NewRequest(method, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{h.t, resp.StatusCode, resp.Header, string(b)}
}

// want fails the test unless the answer has the code.
func (a answer) want(code int) answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("got status %d, want %d: %s", a.code, code, a.body)
	}
	return a
}

// get reads a field of the JSON body by its path, "" if it is not there.
func (a answer) get(path ...string) string {
	a.t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		a.t.Fatalf("not JSON: %v: %s", err, a.body)
	}
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			var i int
			for _, c := range p {
				i = i*10 + int(c-'0')
			}
			if i >= len(x) {
				return ""
			}
			v = x[i]
		default:
			return ""
		}
	}
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return x.String()
	}
	b, _ := json.Marshal(v)
	return string(b)
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func configMap(name, value string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"key":"` + value + `"}}`
}
