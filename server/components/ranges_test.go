package components_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/components"
)

func TestCheckRanges(t *testing.T) {
	services := []string{"10.96.0.0/12", "fd00:1::/112"}
	for _, tt := range []struct {
		cluster []string
		masks   components.Masks
		want    string // "" for none
	}{
		{nil, components.Masks{}, ""},
		{[]string{"10.244.0.0/16"}, components.Masks{}, ""},
		{[]string{"10.244.0.0/16", "fd00:2::/48"}, components.Masks{}, ""},
		{[]string{"10.244.0.0/24"}, components.Masks{}, ""},
		{[]string{"10.0.0.0/12"}, components.Masks{}, ""},
		{[]string{"10.244.0.0/25"}, components.Masks{IPv4: 26}, ""},
		{[]string{"10.244.0.0/25"}, components.Masks{}, `"10.244.0.0/25" has no room for a node with /24`},
		{[]string{"10.244.0.0/16"}, components.Masks{Any: 12}, `"10.244.0.0/16" has no room for a node with /12`},
		{[]string{"fd00:2::/40"}, components.Masks{}, `"fd00:2::/40" has too many nodes with /64: write a range of /48 or smaller`},
		{[]string{"10.244.0.0/16", "10.245.0.0/16"}, components.Masks{}, `"10.245.0.0/16" is the second range of its family`},
		{[]string{"10.244.0.0"}, components.Masks{}, `"10.244.0.0": write a range such as 10.244.0.0/16`},
		{[]string{"10.100.0.0/16"}, components.Masks{}, `"10.100.0.0/16" overlaps with 10.96.0.0/12, the addresses of Services`},
		{[]string{"10.0.0.0/8"}, components.Masks{}, `"10.0.0.0/8" overlaps with 10.96.0.0/12`},
		{[]string{"fd00:1::/64"}, components.Masks{}, `"fd00:1::/64" overlaps with fd00:1::/112`},
	} {
		err := components.CheckRanges(tt.cluster, services, tt.masks)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%q with %+v: %v, want %q", tt.cluster, tt.masks, err, tt.want)
		}
	}
}
