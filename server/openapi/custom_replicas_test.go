package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/servertest"
)

// peer is one of several servers on a database, with the ETags that a client keeps.
type peer struct {
	t      *testing.T
	url    string
	client *http.Client
	tags   map[string]string // by path: the ETag that the client has
}

func newPeer(t *testing.T, srv *servertest.Server) *peer {
	client, err := clientrest.HTTPClientFor(srv.Config)
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(client.CloseIdleConnections)
	return &peer{t: t, url: srv.URL(), client: client, tags: map[string]string{}}
}

func (p *peer) do(method, path, body string, header ...string) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, string(text)
}

// documentURL is a document's place in the index, empty if it is not there.
func (p *peer) documentURL(path string) string {
	p.t.Helper()
	_, text := p.do("GET", "/openapi/v3", "")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		p.t.Fatalf("%v: %s", err, text)
	}
	return index.Paths[path].ServerRelativeURL
}

const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// The paths that a client polls, with what it accepts.
var polled = map[string]string{
	"/openapi/v2":                            "application/json",
	"/openapi/v3/apis/follow.example.com/v1": "application/json",
	"/apis":                                  aggregatedDiscovery,
}

// poll requests every path with the ETag of the last answer, and returns the changed paths.
func (p *peer) poll() (changed []string) {
	p.t.Helper()
	for _, path := range []string{"/apis", "/openapi/v2", "/openapi/v3/apis/follow.example.com/v1"} {
		resp, body := p.do("GET", path, "", "Accept", polled[path], "If-None-Match", p.tags[path])
		if resp.StatusCode == http.StatusNotModified {
			if body != "" {
				p.t.Errorf("%s: %d with a body", path, resp.StatusCode)
			}
			continue
		}
		changed = append(changed, path)
		p.tags[path] = resp.Header.Get("ETag")
	}
	return changed
}

func (p *peer) eventually(what string, ok func() bool) {
	p.t.Helper()
	apitest.Eventually(p.t, what, ok)
}

const followed = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"toys.follow.example.com"},
	"spec":{"group":"follow.example.com","scope":"Namespaced","names":{"plural":"toys","kind":"Toy"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"first":{"type":"string"}}}}},
		{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

const followedPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// TestDocumentsFollowDefinitions changes a definition through one server and looks at the
// documents of all servers on the database.
func TestDocumentsFollowDefinitions(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		var peers []*peer
		var servers []*servertest.Server
		for range d.Servers {
			servers = append(servers, servertest.Start(t, servertest.Options{DSN: dsn}))
			peers = append(peers, newPeer(t, servers[len(servers)-1]))
		}
		follow(peers)
		// What is there after a restart has the hashes that it had before.
		if resp, body := peers[0].do("POST", followedPath, followed, "Content-Type", "application/json"); resp.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		peers[0].eventually("created again", func() bool { return peers[0].documentURL("apis/follow.example.com/v1") != "" })
		peers[0].poll()
		for _, s := range servers {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		again := newPeer(t, servertest.Start(t, servertest.Options{DSN: dsn}))
		again.tags = peers[0].tags
		if changed := again.poll(); changed != nil {
			t.Errorf("changed by a restart: %v", changed)
		}
	})
}

func follow(peers []*peer) {
	p, t := peers[0], peers[0].t
	t.Helper()
	for _, p := range peers {
		p.poll()
	}
	old := ""
	for _, step := range []struct {
		name         string
		method, body string
		// what is to be in the document of v1, and in the index and discovery
		field   string
		v1beta1 bool
		changed int // of the paths that are polled
	}{
		{"create", "POST", followed, "first", true, 3},
		{"change the schema", "PATCH", `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties","value":{"second":{"type":"string"}}}]`, "second", true, 2}, // not discovery
		{"stop serving a version", "PATCH", `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`, "second", false, 3},
		{"delete", "DELETE", "", "", false, 3},
	} {
		path, mediaType := followedPath+"/toys.follow.example.com", "application/json-patch+json"
		if step.method == "POST" {
			path, mediaType = followedPath, "application/json"
		}
		if resp, body := p.do(step.method, path, step.body, "Content-Type", mediaType); resp.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", step.name, resp.StatusCode, body)
		}
		for i, p := range peers {
			what := fmt.Sprintf("%s, server %d", step.name, i)
			p.eventually(what, func() bool {
				url := p.documentURL("apis/follow.example.com/v1")
				return url != old && (url != "") == (step.field != "")
			})
			p.checkStep(what, step.field, step.v1beta1, old)
			if changed := p.poll(); len(changed) != step.changed {
				t.Errorf("%s: changed: %v, want %d", what, changed, step.changed)
			}
			if changed := p.poll(); step.field != "" && changed != nil {
				t.Errorf("%s: changed without a change: %v", what, changed)
			}
		}
		if peers[0].tags["/openapi/v2"] != peers[len(peers)-1].tags["/openapi/v2"] || peers[0].tags["/apis"] != peers[len(peers)-1].tags["/apis"] {
			t.Errorf("%s: the hashes of servers differ: %v, %v", step.name, peers[0].tags, peers[len(peers)-1].tags)
		}
		old = p.documentURL("apis/follow.example.com/v1")
	}
}

func (p *peer) checkStep(what, field string, v1beta1 bool, old string) {
	p.t.Helper()
	url := p.documentURL("apis/follow.example.com/v1")
	resp, document := p.do("GET", "/openapi/v3/apis/follow.example.com/v1", "")
	if served := resp.StatusCode == http.StatusOK; served != (field != "") || served && !strings.Contains(document, `"`+field+`":{"type":"string"}`) {
		p.t.Errorf("%s: document of v1: %d %.100s", what, resp.StatusCode, document)
	}
	if old != "" && url != "" {
		resp, _ := p.do("GET", old, "")
		if resp.StatusCode != http.StatusMovedPermanently || resp.Header.Get("Location") != url {
			p.t.Errorf("%s: the old URL: %d %s", what, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	_, v2 := p.do("GET", "/openapi/v2", "")
	if got := strings.Contains(v2, `"`+field+`":{"type":"string"}`); field != "" && !got {
		p.t.Errorf("%s: field %s is not in v2", what, field)
	}
	_, list := p.do("GET", "/apis", "", "Accept", aggregatedDiscovery)
	resp, _ = p.do("GET", "/apis/follow.example.com/v1beta1", "")
	for where, got := range map[string]bool{
		"the index":            p.documentURL("apis/follow.example.com/v1beta1") != "",
		"v2":                   strings.Contains(v2, `"/apis/follow.example.com/v1beta1/toys"`),
		"aggregated discovery": strings.Contains(list, `"responseKind":{"group":"follow.example.com","version":"v1beta1","kind":"Toy"}`),
		"discovery":            resp.StatusCode == http.StatusOK,
	} {
		if got != v1beta1 {
			p.t.Errorf("%s: v1beta1 is in %s: %t", what, where, got)
		}
	}
	if got := strings.Contains(list, `"version":"v1","resources":[{"resource":"toys"`) && strings.Contains(list, `"freshness":"Current"`); got != (field != "") {
		p.t.Errorf("%s: v1 is in aggregated discovery: %t", what, got)
	}
}
