package builtin_test

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

func TestParseEnabled(t *testing.T) {
	for _, c := range []struct{ key, value, err string }{
		{"api/all", "true", ""},
		{"api/all", "", ""},
		{"v1", "true", ""},
		{"/v1", "true", ""},
		{"api/v1", "false", ""},
		{"api/v1/secrets", "false", ""},
		{"api/v1/bindings", "false", ""},
		{"api/v1/componentstatuses", "false", ""},
		{"apps/v1", "false", ""},
		{"apps/v1/deployments", "false", ""},
		{"apiextensions.k8s.io/v1", "false", ""},
		{"api/all", "false", "api/all=false leaves nothing to serve; write what to serve behind it, such as api/all=false,api/v1=true"},
		{"api/all", "yes", "api/all=yes: write api/all=true or api/all=false"},
		{"apps/v1", "1", "apps/v1=1: write apps/v1=true or apps/v1=false"},
		{"apps", "true", `"apps" is no version; write GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta or api/alpha`},
		{"a/b/c/d", "true", `"a/b/c/d" is no version; write GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta or api/alpha`},
		{"apps/v7", "true", `version "apps/v7" is not known`},
		{"api/legacy", "true", `version "api/legacy" is not known`},
		{"example.com/v1", "true", `version "example.com/v1" is not known`},
		{"apps/v1/deployment", "false", `resource "deployment" is not known in apps/v1; write its plural name`},
		{"apps/v1/Deployments", "false", `resource "Deployments" is not known in apps/v1; write its plural name`},
		{"resource.k8s.io/v1beta1/devicetaintrules", "true", `resource "devicetaintrules" is not known in resource.k8s.io/v1beta1; write its plural name`},
	} {
		_, err := builtin.ParseEnabled(map[string]string{c.key: c.value}, builtin.Forward{})
		if got := text(err); got != c.err {
			t.Errorf("%s=%s: error %q, want %q", c.key, c.value, got, c.err)
		}
	}
}

// TestGatedResources: some resources need both their version and a feature gate.
func TestGatedResources(t *testing.T) {
	for _, c := range []struct {
		gate                     featuregate.Feature
		version, group, resource string
	}{
		{features.ClusterTrustBundle, "v1beta1", "certificates.k8s.io", "clustertrustbundles"},
		{features.PodCertificateRequest, "v1beta1", "certificates.k8s.io", "podcertificaterequests"},
		{features.StorageVersionMigrator, "v1beta1", "storagemigration.k8s.io", "storageversionmigrations"},
		{features.EvictionRequestAPI, "v1alpha1", "lifecycle.k8s.io", "evictionrequests"},
		{features.GenericWorkload, "v1beta1", "scheduling.k8s.io", "podgroups"},
	} {
		for _, on := range []bool{true, false} {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, c.gate, on)
			enabled, err := builtin.ParseEnabled(map[string]string{c.group + "/" + c.version: "true"}, builtin.Forward{})
			if err != nil {
				t.Fatal(err)
			}
			there := false
			for _, k := range builtin.Kinds(builtin.Options{Enabled: enabled}) {
				there = there || k.Resource == c.resource && k.Version(c.version) != nil
			}
			if there != on {
				t.Errorf("%s with %s=%v: served %v", c.resource, c.gate, on, there)
			}
		}
	}
}

// TestStoredVersionsStay: storage versions do not depend on the served versions.
func TestStoredVersionsStay(t *testing.T) {
	all, err := builtin.ParseEnabled(map[string]string{"api/all": "true"}, builtin.Forward{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for _, k := range builtin.Kinds(builtin.Options{Enabled: all}) {
		stored[k.GroupResource().String()] = k.Stored.Version
	}
	for _, settings := range []map[string]string{
		nil,
		{"api/ga": "false", "api/beta": "true"},
		{"api/all": "false", "api/alpha": "true"},
		{"autoscaling/v2": "false"},
	} {
		enabled, err := builtin.ParseEnabled(settings, builtin.Forward{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range builtin.Kinds(builtin.Options{Enabled: enabled}) {
			if want := stored[k.GroupResource().String()]; k.Stored.Version != want {
				t.Errorf("%v: %s is stored as %s, else as %s", settings, k.GroupResource(), k.Stored.Version, want)
			}
		}
	}
}
