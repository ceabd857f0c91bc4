package admit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/plinth-io/plinth/server/admit"
)

// TestTable holds the table against kube-apiserver's own lists.
func TestTable(t *testing.T) {
	names, off := admit.Known()
	if diff := cmp.Diff(options.AllOrderedPlugins, names); diff != "" {
		t.Errorf("plugins in order: kube-apiserver (-), plinth (+)\n%s", diff)
	}
	slices.Sort(off)
	if diff := cmp.Diff(sets.List(options.DefaultOffAdmissionPlugins()), off); diff != "" {
		t.Errorf("plugins that are off: kube-apiserver (-), plinth (+)\n%s", diff)
	}
}

func pluginOptions(t testing.TB) admit.Options {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	return admit.Options{
		WebhookOptions: admit.WebhookOptions{Store: openStore(t), Client: &clientrest.Config{Host: "127.0.0.1:0"}, Authorizer: signersOf{}},
		Stop:           stop,
	}
}

// TestOperations checks that a plugin which is not there yet says the same as upstream's of
// which operations it handles, and that each can be made of what there is.
func TestOperations(t *testing.T) {
	admit.EachUpstream(pluginOptions(t), func(name string, ours, upstream admission.Interface, err error) {
		if name == "ImagePolicyWebhook" || name == "OwnerReferencesPermissionEnforcement" || name == "EventRateLimit" {
			return // these are asked for what they need, below
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, op := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
			if ours.Handles(op) != upstream.Handles(op) {
				t.Errorf("%s handles %s: upstream %v, plinth %v", name, op, upstream.Handles(op), ours.Handles(op))
			}
		}
	})
}

func TestNew(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Planet, qps: 1, burst: 1}]}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	quota := filepath.Join(t.TempDir(), "quota.yaml")
	if err := os.WriteFile(quota, []byte(strings.ReplaceAll(text, "EventRateLimit", "ResourceQuota")), 0o600); err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(t.TempDir(), "away.yaml")
	if err := os.WriteFile(away, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: PodSecurity, path: nowhere.yaml}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		enable, disable []string
		file            string
		want            string // in the error
	}{
		{},
		{enable: []string{"AlwaysPullImages", "LimitRanger"}, disable: []string{"ServiceAccount", "ValidatingAdmissionPolicy", "AlwaysDeny"}},
		{enable: []string{"Nope"}, want: `enable-admission-plugins plugin "Nope" is unknown; write names out of AlwaysAdmit, `},
		{disable: []string{"limitranger"}, want: `disable-admission-plugins plugin "limitranger" is unknown`},
		{enable: []string{"Priority"}, disable: []string{"Priority"}, want: "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"},
		{enable: []string{"ValidatingAdmissionPolicy"}, want: `plinth does not have the plugin "ValidatingAdmissionPolicy"`},
		{enable: []string{"ImagePolicyWebhook"}, want: `couldn't init admission plugin "ImagePolicyWebhook"`},
		{enable: []string{"EventRateLimit"}, want: "EventRateLimit"},
		{enable: []string{"EventRateLimit"}, file: config, want: `Unsupported value: "Planet"`},
		{file: config}, // of a plugin that does not run
		{file: quota, want: "ResourceQuota"},
		{file: away, want: filepath.Join(filepath.Dir(away), "nowhere.yaml") + ": no such file"},
		{file: away, disable: []string{"PodSecurity"}},
	} {
		o := pluginOptions(t)
		o.Enable, o.Disable = c.enable, c.disable
		var err error
		if o.Config, err = admit.ReadConfig(c.file); err != nil {
			t.Fatal(err)
		}
		if _, err := admit.New(o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("enable %v, disable %v, %s: %v, want %s", c.enable, c.disable, c.file, err, c.want)
		}
	}
	if _, err := admit.ReadConfig(config + "x"); err == nil {
		t.Error("a file that is not there")
	}
}
