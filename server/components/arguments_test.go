package components_test

import (
	"testing"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server/components"
)

// arguments are those of a program with flags in several sections.
func arguments() (a *components.Arguments, period *string, on *bool) {
	sets := cliflag.NamedFlagSets{}
	period = sets.FlagSet("generic").String("node-monitor-period", "5s", "")
	on = sets.FlagSet("generic").Bool("enable-dynamic-provisioning", true, "")
	sets.FlagSet("generic").Int("concurrent-job-syncs", 5, "")
	sets.FlagSet("generic").Bool("leader-elect", true, "")
	sets.FlagSet("generic").String("cluster-cidr", "", "")
	sets.FlagSet("misc").String("kubeconfig", "", "")
	sets.FlagSet("secure serving").Int("secure-port", 10257, "")
	return components.NewArguments(sets, components.Refused{"cluster-cidr": "cluster-cidr"}), period, on
}

func TestArguments(t *testing.T) {
	a, period, on := arguments()
	if err := a.Set([]string{"node-monitor-period=1s", "--enable-dynamic-provisioning=false"}); err != nil {
		t.Fatal(err)
	}
	if *period != "1s" || *on {
		t.Errorf("they have set %q and %v", *period, *on)
	}
	if !a.Changed("concurrent-job-syncs", "node-monitor-period") || a.Changed("concurrent-job-syncs") {
		t.Error("what was set is not known")
	}
	if err := a.Set([]string{"enable-dynamic-provisioning"}); err != nil || !*on {
		t.Errorf("without a value it is %v: %v", *on, err)
	}
}

func TestBadArguments(t *testing.T) {
	for written, want := range map[string]string{
		"node-monitor-perid=1s":       `"node-monitor-perid=1s" is no flag of it; did you mean --node-monitor-period?`,
		"--frobnicate":                `"--frobnicate" is no flag of it`,
		"":                            `"" is no flag of it`,
		"node-monitor-period":         `"node-monitor-period" has no value: write --node-monitor-period=VALUE`,
		"--concurrent-job-syncs=many": `"--concurrent-job-syncs=many": strconv.ParseInt: parsing "many": invalid syntax`,
		"--leader-elect=false":        `"--leader-elect=false" has no effect inside plinth: leave it out`,
		"secure-port=1":               `"secure-port=1" has no effect inside plinth: leave it out`,
		"kubeconfig=x":                `"kubeconfig=x" has no effect inside plinth: leave it out`,
		"cluster-cidr=10.0.0.0/8":     `"cluster-cidr=10.0.0.0/8": write --cluster-cidr, a flag of plinth`,
	} {
		a, _, _ := arguments()
		if err := a.Set([]string{written}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", written, err, want)
		}
	}
}
