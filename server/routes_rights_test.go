package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/peers"
)

// TestRightsOfRoutes has a table of routes with a right of their own and of roles: neither a right to all
// paths nor one to read everything opens them.
func TestRightsOfRoutes(t *testing.T) {
	s := start(t, Config{ServeSnapshots: true})
	c := clientOf(t, s)
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	give := func(user, role, rules string) {
		if rules != "" {
			c.do("POST", rbac+"/clusterroles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":[%s]}`, role, rules), 201)
		}
		c.do("POST", rbac+"/clusterrolebindings", fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},
			"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, user, role, user), 201)
	}
	own := func(resource, verb string) string {
		return fmt.Sprintf(`{"apiGroups":["plinth.io"],"resources":[%q],"verbs":[%q]}`, resource, verb)
	}
	give("all-paths", "all-paths", `{"nonResourceURLs":["*"],"verbs":["*"]}`)
	give("named-paths", "named-paths", `{"nonResourceURLs":["/plinth/*","/plinth/backup","/plinth/digest","/plinth/snapshots","/plinth/wake"],"verbs":["get","post","create"]}`)
	give("reader", "reader", `{"nonResourceURLs":["*"],"verbs":["get"]},{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]}`)
	give("backup", "backup", own("backups", "create"))
	give("digest", "digest", own("digests", "create"))
	give("snapshots", "snapshots", own("snapshots", "create"))
	give("servers", "servers", own("servers", "create"))
	give("other-verbs", "other-verbs", own("*", "get")+","+own("backups", "list"))
	give("other-group", "other-group", `{"apiGroups":["","history.plinth.io"],"resources":["*"],"verbs":["*"]}`)
	for _, role := range []string{"view", "edit", "admin", "cluster-admin", "system:monitoring", "system:discovery"} {
		give("has-"+role, role, "")
	}
	routes := []struct {
		resource, method, path string
		code                   int // of who may
	}{
		{"backups", "GET", backups.Path, 200},
		{"backups", "GET", backups.Path + "?history=true", 200},
		{"backups", "HEAD", backups.Path, 405},
		{"backups", "POST", backups.Path, 405},
		{"digests", "GET", digestPath, 200},
		{"snapshots", "GET", snapshotsPath, 200},
		{"snapshots", "POST", snapshotsPath, 201},
		{"snapshots", "DELETE", snapshotsPath + "/none", 404},
		{"snapshots", "POST", snapshotsPath + "/none/rewind", 404},
		{"servers", "POST", peers.Path + "?from=a&to=b&revision=1", 404}, // on a database of its own
	}
	all := []string{"backups", "digests", "snapshots", "servers"}
	for user, opens := range map[string][]string{
		"all-paths": nil, "named-paths": nil, "reader": nil, "other-verbs": nil, "other-group": nil, "nobody": nil,
		"has-view": nil, "has-edit": nil, "has-admin": nil, "has-system:monitoring": nil, "has-system:discovery": nil,
		"backup": {"backups"}, "digest": {"digests"}, "snapshots": {"snapshots"}, "servers": {"servers"},
		"has-cluster-admin": all,
	} {
		client := clientAs(t, s, user)
		for _, r := range routes {
			want := 403
			if slices.Contains(opens, r.resource) {
				want = r.code
			}
			code, _, body := apitest.Do(t, client, r.method, s.URL()+r.path, "")
			words := fmt.Sprintf(`%[1]s.plinth.io is forbidden: User \"%[2]s\" cannot create resource \"%[1]s\" in API group \"plinth.io\" at the cluster scope`, r.resource, user)
			if code != want || code == 403 && r.method != "HEAD" && !strings.Contains(body, words) {
				t.Errorf("%s %s of %s: %d, want %d: %.300q", r.method, r.path, user, code, want, body)
			}
		}
	}
	for name, client := range map[string]*http.Client{"masters": clientAs(t, s, "boss", "system:masters"), "anonymous": apitest.Anonymous(t, s), "node": clientAs(t, s, "system:node:n", "system:nodes")} {
		for _, r := range routes {
			want := map[bool]int{true: r.code, false: 403}[name == "masters"]
			if code, _, body := apitest.Do(t, client, r.method, s.URL()+r.path, ""); code != want {
				t.Errorf("%s %s of %s: %d, want %d: %.300q", r.method, r.path, name, code, want, body)
			}
		}
	}
	client := clientAs(t, s, "all-paths")
	for _, path := range []string{"/plinth/backup/", "//plinth/backup", "/plinth//backup", "/plinth/./backup", "/plinth/%62ackup", "/plinth%2fbackup", "/plinth/x/../backup", "/plinth/backup;x", "/PLINTH/backup"} {
		if code, _, body := apitest.Do(t, client, "GET", s.URL()+path, ""); code < 300 || strings.Contains(body, `"resourceVersion"`) {
			t.Errorf("GET %s: %d %.100q", path, code, body)
		}
	}
	if code, _, _ := apitest.Do(t, client, "GET", s.URL()+"/plinth/status", ""); code != 200 {
		t.Errorf("a right to all paths does not open the status: %d", code)
	}
}
