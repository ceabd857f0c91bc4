package admission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// configured are the plugins that take policies and webhooks from files, with the kinds of their configurations.
var configured = map[string]string{
	"ValidatingAdmissionPolicy": "ValidatingAdmissionPolicyConfiguration", "MutatingAdmissionPolicy": "MutatingAdmissionPolicyConfiguration",
	"ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration", "MutatingAdmissionWebhook": "WebhookAdmissionConfiguration",
}

// configFile writes an AdmissionConfiguration with fields of the configurations of plugins.
func configFile(t *testing.T, fields map[string]string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n")
	for plugin, more := range fields {
		fmt.Fprintf(&b, "- {name: %s, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: %s, %s}}\n", plugin, configured[plugin], more)
	}
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecordedManifests plays what kube-apiserver answers with policies and webhooks in files.
// https://kubernetes.io/docs/reference/access-authn-authz/manifest-admission-control/
func TestRecordedManifests(t *testing.T) {
	const conversation = "testdata/recorded/manifests.txt"
	fields := map[string]string{}
	for plugin, dir := range map[string]string{
		"ValidatingAdmissionPolicy": "policies", "MutatingAdmissionPolicy": "mutations", "ValidatingAdmissionWebhook": "webhooks",
	} {
		path, err := filepath.Abs("testdata/manifests/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		fields[plugin] = "staticManifestsDir: " + path
	}
	file := configFile(t, fields)
	if u := recordedtest.StartUpstream(t, "", "--admission-control-config-file="+file); u != nil {
		playPolicies(t, u.Admin, u.URL, conversation)
		return
	}
	srv := servertest.Start(t, servertest.Options{AdmissionConfigFile: file})
	playPolicies(t, clientOf(t, srv), srv.URL(), conversation)
}
