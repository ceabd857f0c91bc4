package admit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// The files in testdata/recorded are conversations with kube-apiserver 1.33 that runs its
// default plugins, in named.txt others too, and no controllers. Each block is a request and, below "=>", its status,
// its warnings with a "!" before each, and the whole answer but for what is new each time.
func TestRecorded(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		for file, o := range recordedWith {
			o.DSN, o.DisableAdmissionPlugins = d.Fresh(t), []string{}
			playRecorded(t, servertest.Start(t, o), "testdata/recorded/"+file)
		}
	})
}

// recordedWith has how the server ran, by file.
var recordedWith = map[string]servertest.Options{
	"default.txt": {},
	"named.txt": {
		EnableAdmissionPlugins: []string{
			"AlwaysPullImages", "NodeRestriction", "PodNodeSelector", "PodTolerationRestriction", "ExtendedResourceToleration",
			"DenyServiceExternalIPs", "NamespaceAutoProvision", "NamespaceExists", "LimitPodHardAntiAffinityTopology",
			"EventRateLimit", "OwnerReferencesPermissionEnforcement",
		},
		AdmissionConfigFile: "testdata/recorded/config.yaml",
	},
}

func playRecorded(t *testing.T, srv *servertest.Server, file string) {
	t.Helper()
	api, err := clientrest.HTTPClientFor(srv.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(text)), "\n----\n")
	for _, block := range blocks {
		r := parseRecorded(t, block)
		got, err := r.ask(t, api, srv.URL())
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s: %s %s: kube-apiserver (-), plinth (+)\n%s", r.name, r.method, r.path, diff)
		}
	}
}

// recorded is one block.
type recorded struct {
	name, method, path, body string
	header                   http.Header
	want                     answered
}

type answered struct {
	Code     int
	Warnings []string
	Body     any
}

func parseRecorded(t *testing.T, block string) *recorded {
	t.Helper()
	request, answer, ok := strings.Cut(block, "\n=> ")
	if !ok {
		t.Fatalf("no answer in %s", block)
	}
	r := &recorded{header: http.Header{}}
	head, body, _ := strings.Cut(request, "\n\n")
	r.body = body
	lines := strings.Split(head, "\n")
	r.name = strings.TrimPrefix(lines[0], "# ")
	r.method, r.path, _ = strings.Cut(lines[1], " ")
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, ": ")
		r.header.Add(name, value)
	}
	if r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", "application/json")
	}
	lines = strings.Split(answer, "\n")
	var err error
	if r.want.Code, err = strconv.Atoi(lines[0]); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	for _, line := range lines[1 : len(lines)-1] {
		r.want.Warnings = append(r.want.Warnings, strings.TrimPrefix(line, "! "))
	}
	if err := json.Unmarshal(settled([]byte(lines[len(lines)-1])), &r.want.Body); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return r
}

func (r *recorded) ask(t *testing.T, api *http.Client, url string) (got answered, err error) {
	request, err := http.NewRequestWithContext(t.Context(), r.method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		return got, err
	}
	request.Header = r.header
	response, err := api.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return got, err
	}
	got.Code = response.StatusCode
	for _, warning := range response.Header.Values("Warning") {
		got.Warnings = append(got.Warnings, string(settled([]byte(warning))))
	}
	if err := json.Unmarshal(settled(body), &got.Body); err != nil {
		return got, fmt.Errorf("%s: %w", bytes.TrimSpace(body), err)
	}
	forget(got.Body)
	return got, nil
}

var (
	moment    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	generated = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
)

// settled has words for what is new each time.
func settled(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\u00a0"), []byte(" ")) // as it pleases go-cmp, in each binary
	return generated.ReplaceAll(moment.ReplaceAll(text, []byte("TIME")), []byte("kube-api-access-NAME"))
}

// forget takes away what else is new each time.
func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "uid")
		if m, ok := v["metadata"].(map[string]any); ok {
			for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
				delete(m, field)
			}
		}
		for _, each := range v {
			forget(each)
		}
	case []any:
		for _, each := range v {
			forget(each)
		}
	}
}
