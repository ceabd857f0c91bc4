package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestDiscoveryRecorded compares what discovery shows with what kube-apiserver's does, by default and with each
// version that there is: groups, their versions in their order, and what each has. A group version of
// kube-apiserver's that plinth does not serve fails here.
func TestDiscoveryRecorded(t *testing.T) {
	for file, settings := range map[string]map[string]string{
		"default.txt":    nil,
		"everything.txt": {"api/all": "true"},
	} {
		t.Run(file, func(t *testing.T) {
			var flags []string
			for key, value := range settings {
				flags = append(flags, "--runtime-config="+key+"="+value)
			}
			if u := recordedtest.StartUpstream(t, "", flags...); u != nil {
				playDiscovery(t, u.Admin, u.URL, file)
				return
			}
			s := start(t, Config{RuntimeConfig: settings})
			playDiscovery(t, apitest.Admin(t, s), s.URL(), file)
		})
	}
}

// playDiscovery compares the groups of the answers, one by one, but for plinth's own.
func playDiscovery(t *testing.T, client *http.Client, url, file string) {
	for _, e := range recordedtest.Read(t, "testdata/discovery/"+file) {
		a := e.Ask(t, client, url)
		var list struct{ Items []any }
		must(t, json.Unmarshal(a.Body, &list))
		var groups []any
		for _, item := range list.Items {
			if name, _ := item.(map[string]any)["metadata"].(map[string]any)["name"].(string); !strings.HasSuffix(name, ".plinth.io") {
				groups = append(groups, item)
			}
		}
		e.Check(t, a, groups...)
	}
}
