package server

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestFairnessRecorded compares the default objects of priority and fairness, and what becomes of
// others, with those of kube-apiserver.
func TestFairnessRecorded(t *testing.T) {
	if u := recordedtest.StartUpstream(t, ""); u != nil {
		for _, e := range recordedtest.Read(t, "testdata/fairness/recorded.txt") {
			e.Play(t, u.Admin, u.URL)
		}
		return
	}
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		for i, e := range recordedtest.Read(t, "testdata/fairness/recorded.txt") {
			s := []*Server{one, other}[i%2]
			apitest.Eventually(t, "conditions are there", func() bool { return conditioned(one.store) && conditioned(other.store) })
			e.Play(t, apitest.Admin(t, s), s.URL())
		}
	})
}

// TestFairnessClassified compares where requests belong with what kube-apiserver says in the
// headers of its answers.
func TestFairnessClassified(t *testing.T) {
	const file = "testdata/fairness/classified.txt"
	recorded, err := os.ReadFile(file)
	must(t, err)
	if u := recordedtest.StartUpstream(t, ""); u != nil {
		lines := classified(t, u.Admin, u.URL, string(recorded), func(string, string, string) {})
		must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
		return
	}
	s := start(t, Config{})
	classified(t, apitest.Admin(t, s), s.URL(), string(recorded), func(who, asked, differs string) {
		t.Errorf("%s: %s: %s", who, asked, differs)
	})
}

// classified makes the requests of a recording and returns its lines with the answers that there are now. It
// calls report for each that is another one.
func classified(t *testing.T, client *http.Client, url, recorded string, report func(who, asked, differs string)) (lines []string) {
	names := map[string]string{}
	for _, resource := range []string{"flowschemas", "prioritylevelconfigurations"} {
		var list metav1.PartialObjectMetadataList
		_, _, body := apitest.Do(t, client, "GET", url+"/apis/flowcontrol.apiserver.k8s.io/v1/"+resource, "")
		must(t, json.Unmarshal([]byte(body), &list))
		for _, o := range list.Items {
			names[string(o.UID)] = o.Name
		}
	}
	var who []string
	for _, line := range strings.Split(recorded, "\n") {
		asked, want, isRequest := strings.Cut(line, " => ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isRequest:
			who = strings.Fields(line)
		default:
			method, path, _ := strings.Cut(asked, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
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
				report(strings.Join(who, " "), asked, got+", want "+want)
			}
			line = asked + " => " + got
		}
		lines = append(lines, line)
	}
	return lines
}
