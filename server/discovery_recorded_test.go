package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestDiscoveryRecorded compares what discovery shows with what kube-apiserver's does, by default and with each
// version that there is: groups, their versions in their order, and what each has. A group version of
// kube-apiserver's that plinth does not serve fails here. Older releases that are emulated have other versions.
func TestDiscoveryRecorded(t *testing.T) {
	everything := map[string]string{"api/all": "true"}
	for _, row := range []struct {
		file, emulated string
		settings       map[string]string
		forward        builtin.Forward
	}{
		{file: "default.txt"},
		{file: "everything.txt", settings: everything},
		{file: "emulated-1.34.txt", emulated: "1.34"},
		{file: "everything-1.34.txt", emulated: "1.34", settings: everything},
		{file: "everything-1.35.txt", emulated: "1.35", settings: everything},
		{file: "everything-1.36.txt", emulated: "1.36", settings: everything},
		{file: "forward-1.34.txt", emulated: "1.34", settings: map[string]string{
			"certificates.k8s.io/v1beta1": "true", "resource.k8s.io/v1alpha3/devicetaintrules": "true", "storagemigration.k8s.io/v1beta1": "true",
		}, forward: builtin.Forward{Configured: true}},
		{file: "successors-1.34.txt", emulated: "1.34", settings: everything, forward: builtin.Forward{Successors: true}},
	} {
		t.Run(row.file, func(t *testing.T) {
			flags := []string{fmt.Sprint("--runtime-config-emulation-forward-compatible=", row.forward.Configured), fmt.Sprint("--emulation-forward-compatible=", row.forward.Successors)}
			for key, value := range row.settings {
				flags = append(flags, "--runtime-config="+key+"="+value)
			}
			if row.emulated != "" {
				flags = append(flags, "--emulated-version="+row.emulated)
				emulate(t, row.emulated)
			}
			if u := recordedtest.StartUpstream(t, "", flags...); u != nil {
				playDiscovery(t, u.Admin, u.URL, row.file)
				return
			}
			s := start(t, Config{RuntimeConfig: row.settings, Forward: row.forward})
			playDiscovery(t, apitest.Admin(t, s), s.URL(), row.file)
		})
	}
}

// emulate has the process behave as an older release until the test ends. Tests that call it are not parallel.
func emulate(t *testing.T, release string) {
	must(t, kind.Emulate([]string{release}, nil))
	t.Cleanup(func() { must(t, kind.Emulate(nil, nil)) })
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
