package allocate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

func TestParseRanges(t *testing.T) {
	for _, c := range []struct {
		addresses, ports string
		want, err        string
	}{
		{"", "", "[10.96.0.0/12] [10.96.0.1] 30000-32767", ""},
		{"10.0.0.0/24", "30000-30010", "[10.0.0.0/24] [10.0.0.1] 30000-30010", ""},
		{"10.0.0.7/24, fd00::/112", "", "[10.0.0.0/24 fd00::/112] [10.0.0.1 fd00::1] 30000-32767", ""},
		{"fd00::/64,10.0.0.0/29", "", "[fd00::/64 10.0.0.0/29] [fd00::1 10.0.0.1] 30000-32767", ""},
		{"10.0.0.0/24,10.1.0.0/24", "", "", "write one range, or one of IPv4 and one of IPv6"},
		{"10.0.0.0/24,fd00::/112,fd01::/112", "", "", "write one range, or one of IPv4 and one of IPv6"},
		{"10.0.0.0", "", "", `Config.ServiceClusterIPRange "10.0.0.0": write a range, such as 10.96.0.0/12`},
		{"10.0.0.0/30", "", "", "write a range of 8 addresses or more"},
		{"fd00::/48", "", "", "no wider than a /64"},
		{"", "x", "", `Config.ServiceNodePortRange "x": write FIRST-LAST, such as 30000-32767`},
		{"", "0-0", "", "write FIRST-LAST"},
	} {
		var list []string
		if c.addresses != "" {
			list = strings.Split(c.addresses, ",")
		}
		r, err := allocate.ParseRanges(list, c.ports)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q %q: error %v, want %s", c.addresses, c.ports, err, c.err)
			}
			continue
		}
		if got := fmt.Sprintf("%v %v %v", r.CIDRs(), r.First(), r.NodePorts); err != nil || got != c.want {
			t.Errorf("%q %q: %s %v, want %s", c.addresses, c.ports, got, err, c.want)
		}
	}
}
