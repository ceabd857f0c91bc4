package builtin_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

func TestDeprecated(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		for _, v := range k.Versions {
			want := ""
			if k.Group == "" && k.Resource == "endpoints" {
				want = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
			}
			if k.Resource == "componentstatuses" {
				want = "v1 ComponentStatus is deprecated in v1.19+"
			}
			if v.Deprecated != want {
				t.Errorf("%s %s: %q, want %q", k.GroupResource(), v.Name, v.Deprecated, want)
			}
		}
	}
}
