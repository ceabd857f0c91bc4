package builtin_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestRemovedSettings chooses among removed versions by both flags.
func TestRemovedSettings(t *testing.T) {
	for _, c := range []struct{ names, settings, want, err string }{
		{"batch/v1beta1", "", "batch/v1beta1/cronjobs", ""},
		{"batch/v1beta1", "batch/v1beta1=false", "", ""},
		{"networking.k8s.io/v1beta1", "networking.k8s.io/v1beta1/ingresses=false",
			"networking.k8s.io/v1beta1/ingressclasses networking.k8s.io/v1beta1/ipaddresses networking.k8s.io/v1beta1/servicecidrs", ""},
		{"networking.k8s.io/v1beta1", "networking.k8s.io/v1beta1=false,networking.k8s.io/v1beta1/ingresses=true", "networking.k8s.io/v1beta1/ingresses", ""},
		{"batch/v1beta1", "api/beta=false", "batch/v1beta1/cronjobs", ""},
		{"batch/v1beta1", "batch/v1beta1=true", "batch/v1beta1/cronjobs", ""},
		{"", "batch/v1beta1=false", "", ""},
		{"", "coordination.k8s.io/v1beta1=true", "", ""}, // it has live resources, too
		{"", "scheduling.k8s.io/v1beta1=true", "", ""},   // these need a feature gate
		{"", "networking.k8s.io/v1beta1/servicecidrs=true", "", "networking.k8s.io/v1beta1/servicecidrs=true: Kubernetes has removed it; write --serve-removed-apis=networking.k8s.io/v1beta1/servicecidrs"},
		{"", "batch/v1beta1=true", "", "batch/v1beta1=true: Kubernetes has removed it; write --serve-removed-apis=batch/v1beta1"},
		{"batch/v1beta1", "extensions/v1beta1/ingresses=true", "", "extensions/v1beta1/ingresses=true: Kubernetes has removed it; write --serve-removed-apis=extensions/v1beta1/ingresses"},
	} {
		settings, names := map[string]string{}, []string(nil)
		for _, pair := range strings.FieldsFunc(c.settings, func(r rune) bool { return r == ',' }) {
			key, value, _ := strings.Cut(pair, "=")
			settings[key] = value
		}
		if c.names != "" {
			names = []string{c.names}
		}
		enabled, err := builtin.ParseEnabled(settings, builtin.Forward{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := enabled.Removed(names)
		var got []string
		for _, r := range all {
			got = append(got, r.GVK.GroupVersion().String()+"/"+r.Resource.Resource)
		}
		if strings.Join(got, " ") != c.want || text(err) != c.err {
			t.Errorf("%q with %q: %v, error %q", c.names, c.settings, got, text(err))
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
