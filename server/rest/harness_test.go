package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/definitions"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// harness serves the verbs on a real store, without the server around them.
type harness struct {
	t     testing.TB
	store *sqlstore.Store
	kinds *kind.Registry
	api   *rest.API
	http  *httptest.Server
}

// away says on which databases, by the schemes of their DSNs, the values of objects leave memory at once, so that
// reads go to the log. About half of the tests have it, and each says it itself; tests that run on each dialect have
// it on some. PLINTH_TEST_NOTHING_STAYS=1 says it for all.
type away []string

var (
	nothingStays   = away{"sqlite", "postgres", "mysql"}
	awayOnPostgres = away{"postgres"}
	awayOnOthers   = away{"sqlite", "mysql"}
)

// newHarness serves from a database in memory. Values stay in memory too, unless it is given nothingStays.
func newHarness(t testing.TB, o rest.Options, from ...away) *harness {
	t.Helper()
	return newHarnessOn(t, "sqlite://:memory:", slices.Concat(from...), o)
}

// onEachDialect runs test with the verbs on a fresh database of each dialect.
func onEachDialect(t *testing.T, from away, o rest.Options, test func(t *testing.T, h *harness)) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, newHarnessOn(t, d.Fresh(t), from, o)) })
}

// aloneAndShared is onEachDialect for what the SQL does not decide (logtest.AloneAndShared).
func aloneAndShared(t *testing.T, from away, o rest.Options, test func(t *testing.T, h *harness)) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) { test(t, newHarnessOn(t, d.Fresh(t), from, o)) })
}

func newHarnessOn(t testing.TB, dsn string, from away, o rest.Options) *harness {
	t.Helper()
	var so sqlstore.Options
	if slices.Contains(from, dialects.Scheme(dsn)) {
		so.StateBytes = 1
	}
	return newHarnessWith(t, dsn, so, o)
}

func newHarnessWith(t testing.TB, dsn string, so sqlstore.Options, o rest.Options) *harness {
	t.Helper()
	ctx := context.Background()
	log, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if so.History == 0 {
		so.History = -1 // tests look back at what they have done, however long that took
	}
	if _, benchmark := t.(*testing.B); so.StateBytes == 0 && !benchmark && os.Getenv("PLINTH_TEST_NOTHING_STAYS") != "" {
		so.StateBytes = 1
	}
	store, err := object.Open(ctx, log, so)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, store: store, kinds: kind.NewRegistry(builtin.Priorities())}
	h.api = rest.New(store, h.kinds, o)
	h.http = httptest.NewServer(h)
	h.kinds.Replace(nil, builtin.Kinds(builtin.Options{Store: store, Client: h.client(), Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()}))
	t.Cleanup(func() {
		h.api.Drain()
		h.http.Close()
		store.Close()
	})
	return h
}

func (h *harness) client() *clientrest.Config { return &clientrest.Config{Host: h.http.URL, QPS: -1} }

// offerAddresses creates the ServiceCIDR that a server creates when it starts.
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
		response.WriteError(w, r, err)
		return
	}
	h.api.Serve(w, r, info, &user.DefaultInfo{Name: "tester", Groups: []string{"system:masters"}})
}

// answer is a response with its whole body.
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

// checkRefusal fails unless the answer is a success or a Status that blames the request. A refused
// request must have written nothing.
func checkRefusal(t *testing.T, h *harness, a answer, before int64) {
	t.Helper()
	if a.code < 400 {
		return
	}
	// An internal error without a reason is upstream's answer to some bad input. An internal error
	// with a reason is a bug.
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

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// serveDefinitions serves custom resources until the test ends.
func (h *harness) serveDefinitions() {
	h.t.Helper()
	d, err := definitions.New(definitions.Config{
		Client: &clientrest.Config{Host: h.http.URL, QPS: -1}, Store: h.store, Kinds: h.kinds, DeleteAll: h.api.DeleteAll, Logger: slog.New(slog.NewTextHandler(h.t.Output(), nil)),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	h.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// define creates a definition and returns when it is established.
func (h *harness) define(definition string) {
	h.t.Helper()
	name := h.do("POST", definitionsPath, definition).want(201).get("metadata", "name")
	h.until("established "+name, func() bool { return h.condition(name, "Established") == "True" })
}

// condition is the status of a definition's condition.
func (h *harness) condition(name, condition string) string {
	h.t.Helper()
	a := h.do("GET", definitionsPath+"/"+name, "")
	for i := 0; ; i++ {
		kind := a.get("status", "conditions", fmt.Sprint(i), "type")
		if kind == "" || kind == condition {
			return a.get("status", "conditions", fmt.Sprint(i), "status")
		}
	}
}

func (h *harness) until(what string, ok func() bool) {
	h.t.Helper()
	apitest.Eventually(h.t, what, ok)
}

// widgets is testdata/widgets.json for a group of its own.
func widgets(t testing.TB, group string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/widgets.json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "GROUP", group)
}

// events reads n events of a watch as "TYPE name" and the raw lines.
func (h *harness) events(path string, n int, headers ...string) (list []string, raw []string) {
	h.t.Helper()
	req, _ := http.NewRequest("GET", h.http.URL+path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 5 * time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		h.t.Fatalf("watch answered %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for len(list) < n && lines.Scan() {
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ Name string }
				Reason   string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			h.t.Fatalf("event %q: %v", lines.Text(), err)
		}
		list = append(list, strings.TrimSpace(e.Type+" "+e.Object.Metadata.Name+e.Object.Reason))
		raw = append(raw, lines.Text())
	}
	return list, raw
}

// atOnce runs n clients at the same time and returns the codes of their last answers, sorted.
func atOnce(n int, client func(i int) answer) (codes []int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			a := client(i)
			mu.Lock()
			defer mu.Unlock()
			codes = append(codes, a.code)
		}()
	}
	all.Wait()
	slices.Sort(codes)
	return codes
}
