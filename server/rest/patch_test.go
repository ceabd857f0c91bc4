package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/plinth-io/plinth/server/rest"
)

// patchRow is one patch of a fresh object, and its expected answer.
type patchRow struct {
	name, on string // object[/subresource] of patchObjects; "nobody" is not there
	media    string // short for a Content-Type, or one in full; with query parameters
	patch    string
	code     int
	want     string // fields of the answer as path=value; of a failure "reason: message"
	warnings string // divided by |
}

var patchMedia = map[string]string{
	"json":  "application/json-patch+json",
	"merge": "application/merge-patch+json",
	"smp":   "application/strategic-merge-patch+json",
	"apply": "application/apply-patch+yaml",
}

var patchPaths = map[string]string{
	"configmap":      "/api/v1/namespaces/%s/configmaps/c",
	"deployment":     "/apis/apps/v1/namespaces/%s/deployments/d",
	"service":        "/api/v1/namespaces/%s/services/s",
	"serviceaccount": "/api/v1/namespaces/%s/serviceaccounts/sa",
	"nobody":         "/api/v1/namespaces/%s/configmaps/nobody",
}

// TestPatches sends patches of each type.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply
func TestPatches(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		for _, group := range []struct {
			name string
			rows []patchRow
		}{
			{"json patch", jsonPatchRows},
			{"merge patch", mergePatchRows},
			{"strategic merge patch", strategicPatchRows},
			{"patches on which kube-apiserver panics", deadlyPatchRows},
		} {
			t.Run(group.name, func(t *testing.T) {
				for i, row := range group.rows {
					namespace := fmt.Sprintf("%s-%d", strings.ReplaceAll(group.name, " ", "-"), i)
					t.Run(row.name, func(t *testing.T) { row.run(t, h, namespace) })
				}
			})
		}
	})
}

// deadlyPatchRows are patches on which the libraries panic. kube-apiserver closes the connection.
var deadlyPatchRows = []patchRow{
	{"path into a null", "configmap", "json", `[{"op":"add","path":"/binaryData","value":null},{"op":"add","path":"/binaryData/x","value":"eA=="}]`, 422, rejected, ""},
	{"order of maps for a list of strings", "configmap", "smp", `{"metadata":{"$setElementOrder/finalizers":[{"a":"b"}]}}`, 422, rejected, ""},
}

func (row patchRow) run(t *testing.T, h *harness, namespace string) {
	here := *h
	here.t = t
	on, sub, isSub := strings.Cut(row.on, "/")
	path := fmt.Sprintf(patchPaths[on], namespace)
	if on != "nobody" {
		here.do("POST", path[:strings.LastIndex(path, "/")], patchObjects[on]).want(201)
	}
	before := here.do("GET", path, "")
	url := path
	if isSub {
		url += "/" + sub
	}
	media, query, _ := strings.Cut(row.media, "?")
	if full, ok := patchMedia[media]; ok {
		media = full
	}
	a := here.do("PATCH", url+"?"+query, row.patch, "Content-Type", media)
	checkAnswer(t, a, row.code, row.want, row.warnings)
	now := here.do("GET", path, "")
	if a.code >= 400 && now.body != before.body {
		t.Errorf("a patch that failed changed the object:\n%s\n%s", before.body, now.body)
	}
	if a.code < 400 && !isSub && now.body != a.body {
		t.Errorf("the answer is not what is stored:\n%s\n%s", a.body, now.body)
	}
}

// checkAnswer compares an answer with a row of a table: its code, its warnings, and the
// reason and message of a failure or the fields of a success.
func checkAnswer(t *testing.T, a answer, code int, want, warnings string) {
	t.Helper()
	if a.code != code {
		t.Fatalf("code %d, want %d: %s", a.code, code, a.body)
	}
	if got := warningsOf(t, a); got != warnings {
		t.Errorf("warnings %q, want %q", got, warnings)
	}
	if code >= 400 {
		checkFailure(t, a, want)
		return
	}
	for _, check := range strings.Split(want, "; ") {
		path, value, _ := strings.Cut(check, "=")
		if got := a.get(strings.Split(path, "/")...); got != value {
			t.Errorf("%s is %q, want %q: %s", path, got, value, a.body)
		}
	}
}

// patchedText is the patched object, or the patch, that upstream repeats in a message; it
// has times and a uid in it.
var patchedText = regexp.MustCompile(`(?s)(patch: Invalid value: )"(\{|map\[).*"(: )`)

// checkFailure compares reason and message, and wants a cause for each error in the message.
func checkFailure(t *testing.T, a answer, want string) {
	t.Helper()
	got := patchedText.ReplaceAllString(a.get("message"), "$1...$3")
	if reason := a.get("reason"); reason != "" {
		got = reason + ": " + got
	}
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if a.get("kind") != "Status" || a.get("status") != "Failure" || a.get("code") != fmt.Sprint(a.code) {
		t.Errorf("not the Status of a failure: %s", a.body)
	}
	var status struct {
		Details struct {
			Causes []struct{ Reason, Message, Field string }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &status); err != nil {
		t.Fatal(err)
	}
	for _, c := range status.Details.Causes {
		if !strings.Contains(a.get("message"), c.Field+": "+c.Message) || c.Reason == "" {
			t.Errorf("the message does not have the cause %+v: %s", c, a.body)
		}
	}
	if blames := strings.Contains(want, " is invalid: "); blames != (len(status.Details.Causes) > 0) {
		t.Errorf("causes: %s", a.body)
	}
}

func warningsOf(t *testing.T, a answer) string {
	t.Helper()
	headers, errs := utilnet.ParseWarningHeaders(a.head.Values("Warning"))
	if len(errs) > 0 {
		t.Fatalf("warnings: %v", errs)
	}
	var texts []string
	for _, h := range headers {
		if h.Code != 299 || h.Agent != "-" {
			t.Errorf("warning %+v", h)
		}
		texts = append(texts, h.Text)
	}
	return strings.Join(texts, " | ")
}

// TestConcurrentPatches lets many writers patch a field of their own at the same time. No patch is
// refused and no change is lost.
func TestConcurrentPatches(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("busy", "1")).want(201)
		const writers = 50
		kinds := []string{"json", "merge", "smp"}
		var wg sync.WaitGroup
		for w := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				patch, kind := fmt.Sprintf(`{"data":{"w%d":"x"}}`, w), kinds[w%len(kinds)]
				if kind == "json" {
					patch = fmt.Sprintf(`[{"op":"add","path":"/data/w%d","value":"x"}]`, w)
				}
				if a := h.do("PATCH", configMaps+"/busy", patch, "Content-Type", patchMedia[kind]); a.code != http.StatusOK {
					t.Errorf("writer %d: %d %s", w, a.code, a.body)
				}
			}()
		}
		wg.Wait()
		var got struct{ Data map[string]string }
		if err := json.Unmarshal([]byte(h.do("GET", configMaps+"/busy", "").want(200).body), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Data) != 1+writers {
			t.Errorf("%d fields, want %d: %v", len(got.Data), 1+writers, slices.Sorted(maps.Keys(got.Data)))
		}
	})
}
