package server

import (
	"net/http"
	"os"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestFairnessRecorded compares the default objects of priority and fairness, and what becomes of
// others, with those of kube-apiserver 1.33.
func TestFairnessRecorded(t *testing.T) {
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		for i, e := range recordedtest.Read(t, "testdata/fairness/recorded.txt") {
			e.Header.Del("Authorization")
			s := []*Server{one, other}[i%2]
			apitest.Eventually(t, "conditions are there", func() bool { return conditioned(one.store) && conditioned(other.store) })
			e.Play(t, apitest.Admin(t, s), s.URL())
		}
	})
}

// TestFairnessClassified compares where requests belong with what kube-apiserver 1.33 says in the
// headers of its answers.
func TestFairnessClassified(t *testing.T) {
	s := start(t, Config{})
	names := map[string]string{}
	for _, fs := range lister.All[flowcontrolv1.FlowSchema](s.store, object.Prefix(flowcontrolv1.GroupName, "flowschemas")) {
		names[string(fs.UID)] = fs.Name
	}
	for _, pl := range lister.All[flowcontrolv1.PriorityLevelConfiguration](s.store, object.Prefix(flowcontrolv1.GroupName, "prioritylevelconfigurations")) {
		names[string(pl.UID)] = pl.Name
	}
	client := apitest.Admin(t, s)
	recorded, err := os.ReadFile("testdata/fairness/classified.txt")
	must(t, err)
	var who []string
	for _, line := range strings.Split(string(recorded), "\n") {
		asked, want, isRequest := strings.Cut(line, " => ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isRequest:
			who = strings.Fields(line)
		default:
			method, path, _ := strings.Cut(asked, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, nil)
			must(t, err)
			r.Header = http.Header{"Impersonate-User": who[:1]}
			for _, group := range who[1:] {
				if group != "system:authenticated" && group != "system:unauthenticated" { // added by the server
					r.Header.Add("Impersonate-Group", group)
				}
			}
			a, err := client.Do(r)
			must(t, err)
			a.Body.Close()
			got := names[a.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)] + " " + names[a.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)]
			if got != want {
				t.Errorf("%v: %s: %s, want %s", who, asked, got, want)
			}
		}
	}
}
