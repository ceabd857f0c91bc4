package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
)

// TestSnapshots takes a snapshot, changes and deletes objects and goes back, twice.
func TestSnapshots(t *testing.T) {
	s := start(t, Config{ServeSnapshots: true})
	admin := apitest.Admin(t, s)
	ask := func(method, path, body string, want int) string {
		t.Helper()
		code, _, answer := apitest.Do(t, admin, method, s.URL()+path, body)
		if code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
		return answer
	}
	const maps = "/api/v1/namespaces/default/configmaps"
	object := func(name, value string) string {
		return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"v":%q}}`, name, value)
	}
	ask("POST", maps, object("changed", "old"), 201)
	ask("POST", maps, object("deleted", "old"), 201)
	var taken struct {
		Name     string
		Revision int64
	}
	if err := json.Unmarshal([]byte(ask("POST", snapshotsPath, "", 201)), &taken); err != nil || !strings.HasSuffix(taken.Name, "-1") || taken.Revision <= 0 {
		t.Fatalf("%+v, %v", taken, err)
	}
	path := snapshotsPath + "/" + taken.Name
	for range 2 {
		ask("PUT", maps+"/changed", object("changed", "new"), 200)
		ask("DELETE", maps+"/deleted", "", 200)
		ask("POST", maps, object("new", "new"), 201)
		ask("POST", path+"/rewind", "", 200)
		for _, name := range []string{"changed", "deleted"} {
			if body := ask("GET", maps+"/"+name, "", 200); !strings.Contains(body, `"data":{"v":"old"}`) {
				t.Errorf("%s", body)
			}
		}
		ask("GET", maps+"/new", "", 404)
	}
	if body := ask("GET", snapshotsPath, "", 200); !strings.Contains(body, `{"snapshots":[{"name":"`+taken.Name+`","revision":`) {
		t.Errorf("%s", body)
	}
	if body := ask("GET", "/apis/history.plinth.io/v1/namespaces/default/changes?limit=1&fieldSelector=object.resource%3Dconfigmaps", "", 200); !strings.Contains(body, `"verb":"rewind"`) || !strings.Contains(body, `"user":"kubernetes-admin"`) {
		t.Errorf("who has rewound: %s", body)
	}
	ask("DELETE", maps+"/changed", "", 200)
	ask("DELETE", "/apis/history.plinth.io/v1/namespaces/default/versions?fieldSelector=object.resource%3Dconfigmaps%2Cobject.name%3Dchanged", "", 200)
	if body := ask("POST", path+"/rewind", "", 410); !strings.Contains(body, "take another snapshot") {
		t.Errorf("after an object was forgotten: %s", body)
	}
	ask("POST", strings.TrimSuffix(path, "1")+"2/rewind", "", 404)
	ask("GET", path+"/rewind", "", 405)
	ask("GET", path+"/forward", "", 404)
	ask("DELETE", path, "", 200)
	ask("DELETE", path, "", 404)
	if body := ask("GET", snapshotsPath, "", 200); body != `{"snapshots":[]}`+"\n" {
		t.Errorf("%s", body)
	}
	for range mostSnapshots {
		ask("POST", snapshotsPath, "", 201)
	}
	ask("POST", snapshotsPath, "", 429)
	off := start(t, Config{})
	for _, x := range []*Server{s, off} {
		if code, _, _ := apitest.Do(t, apitest.Anonymous(t, x), "POST", x.URL()+snapshotsPath, ""); code != 403 {
			t.Errorf("as everybody: %d", code)
		}
	}
	if code, _, _ := apitest.Do(t, apitest.Admin(t, off), "POST", off.URL()+snapshotsPath, ""); code != 404 {
		t.Errorf("without the flag: %d", code)
	}
}

// TestSnapshotsOfServers has two servers on one database that each take a snapshot: neither takes
// the other's name for its own.
func TestSnapshotsOfServers(t *testing.T) {
	c := Config{DSN: logtest.Postgres(t), DataDir: t.TempDir(), ServeSnapshots: true}
	one, other := start(t, c), start(t, c)
	take := func(s *Server) string {
		t.Helper()
		var taken keptSnapshot
		code, _, body := apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+snapshotsPath, "")
		if err := json.Unmarshal([]byte(body), &taken); err != nil || code != 201 {
			t.Fatalf("%d %s", code, body)
		}
		return taken.Name
	}
	theirs, mine := take(one), take(other)
	for _, try := range []struct{ method, path string }{{"POST", "/rewind"}, {"DELETE", ""}} {
		code, _, body := apitest.Do(t, apitest.Admin(t, other), try.method, other.URL()+snapshotsPath+"/"+theirs+try.path, "")
		if code != 404 || !strings.Contains(body, "another one took the snapshot") || !strings.Contains(body, strings.TrimSuffix(mine, "1")) {
			t.Errorf("%s %s of the other server: %d %s", try.method, theirs, code, body)
		}
	}
	if code, _, body := apitest.Do(t, apitest.Admin(t, one), "POST", one.URL()+snapshotsPath+"/"+theirs+"/rewind", ""); code != 200 {
		t.Errorf("at its own server: %d %s", code, body)
	}
}
