package admission_test

import (
	"net/http"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// TestRecordedPlugins plays the conversations in testdata/recorded, one for each set of plugins of
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
func TestRecordedPlugins(t *testing.T) {
	play := func(t *testing.T, client *http.Client, url, file string) {
		for _, e := range recordedtest.Read(t, "testdata/recorded/"+file) {
			playPatiently(t, e, client, url)
		}
	}
	for file, o := range recordedWith {
		flags := []string{"--allow-privileged", "--enable-admission-plugins=" + strings.Join(append(o.EnableAdmissionPlugins, "NodeRestriction"), ",")}
		if o.AdmissionConfigFile != "" {
			flags = append(flags, "--admission-control-config-file="+o.AdmissionConfigFile)
		}
		if u := recordedtest.StartUpstream(t, "", flags...); u != nil {
			play(t, u.Admin, u.URL, file)
		}
	}
	if recordedtest.Recording() {
		return
	}
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		for file, o := range recordedWith {
			o.DSN, o.DisableAdmissionPlugins = d.Fresh(t), []string{}
			srv := servertest.Start(t, o)
			client, err := clientrest.HTTPClientFor(srv.Config)
			if err != nil {
				t.Fatal(err)
			}
			play(t, client, srv.URL(), file)
		}
	})
}

// playPatiently plays an exchange, again if it is about a namespace at whose pods upstream's PodSecurity
// has not looked in its second, which is too short for a busy machine.
func playPatiently(t *testing.T, e *recordedtest.Exchange, client *http.Client, url string) {
	t.Helper()
	a := e.Ask(t, client, url)
	for range 20 {
		if !strings.Contains(strings.Join(a.Header.Values("Warning"), " "), "only checked against the first") {
			break
		}
		undo := *e
		undo.Body = `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`
		undo.Ask(t, client, url)
		a = e.Ask(t, client, url)
	}
	e.CheckBody(t, a)
}

// recordedWith are the options of the server that each file was recorded with.
var recordedWith = map[string]servertest.Options{
	"default.txt": {},
	"named.txt": {
		EnableAdmissionPlugins: []string{
			"AlwaysPullImages", "PodNodeSelector", "PodTolerationRestriction", "ExtendedResourceToleration",
			"DenyServiceExternalIPs", "NamespaceAutoProvision", "NamespaceExists", "LimitPodHardAntiAffinityTopology",
			"EventRateLimit", "OwnerReferencesPermissionEnforcement",
		},
		AdmissionConfigFile: "testdata/recorded/config.yaml",
	},
}
