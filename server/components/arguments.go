package components

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/dialects/nearest"
)

// Refused are flags of a component that have no effect inside, and the flags of plinth that do the same; empty: none.
type Refused map[string]string

// refusedSections are the names of sets of flags that have no effect inside: plinth serves the component's pages, elects,
// and logs.
var refusedSections = []string{"secure serving", "authentication", "authorization", "debugging", "leader-migration", "leader election", "metrics", "logs"}

// refusedByBoth are flags that both components have.
var refusedByBoth = Refused{
	"kubeconfig": "", "master": "", "profiling": "profiling", "contention-profiling": "contention-profiling",
	"feature-gates": "feature-gates", "emulated-version": "emulated-version", "min-compatibility-version": "min-compatibility-version",
}

// Arguments are a component's flags, which users may set.
type Arguments struct {
	flags   *pflag.FlagSet
	refused Refused
}

// NewArguments returns the flags of a component; more are flags of it alone that have no effect.
func NewArguments(sets cliflag.NamedFlagSets, more Refused) *Arguments {
	a := &Arguments{pflag.NewFlagSet("", pflag.ContinueOnError), Refused{}}
	for _, set := range sets.FlagSets {
		a.flags.AddFlagSet(set)
	}
	for _, name := range refusedSections {
		if set := sets.FlagSets[name]; set != nil {
			set.VisitAll(func(f *pflag.Flag) { a.refused[f.Name] = "" })
		}
	}
	a.flags.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "leader-elect") {
			a.refused[f.Name] = ""
		}
	})
	for _, some := range []Refused{refusedByBoth, more} {
		for name, instead := range some {
			a.refused[name] = instead
		}
	}
	return a
}

// Changed tells whether a user has set one of the flags.
func (a *Arguments) Changed(names ...string) bool { return slices.ContainsFunc(names, a.flags.Changed) }

// Set takes what a user has written: --NAME=VALUE, NAME=VALUE, or --NAME for a switch.
func (a *Arguments) Set(written []string) error {
	for _, text := range written {
		if err := a.setOne(text); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arguments) setOne(text string) error {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(text, "--"), "=")
	flag := a.flags.Lookup(name)
	if flag == nil {
		return a.unknown(text, name)
	}
	if instead, is := a.refused[name]; is && instead != "" {
		return fmt.Errorf("%q: write --%s, a flag of plinth", text, instead)
	} else if is {
		return fmt.Errorf("%q has no effect inside plinth: leave it out", text)
	}
	if !hasValue && flag.NoOptDefVal == "" {
		return fmt.Errorf("%q has no value: write --%s=VALUE", text, name)
	} else if !hasValue {
		value = flag.NoOptDefVal
	}
	if err := a.flags.Set(name, value); err != nil {
		return fmt.Errorf("%q: %w", text, reason(err))
	}
	return nil
}

// reason is an error of pflag without the name of the flag and the value, which stand before it.
func reason(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.Unwrap() != nil {
		return invalid.Unwrap()
	}
	return err
}

func (a *Arguments) unknown(text, name string) error {
	var names []string
	a.flags.VisitAll(func(f *pflag.Flag) {
		if _, is := a.refused[f.Name]; !is && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	if meant := nearest.Of(name, names); meant != "" {
		return fmt.Errorf("%q is no flag of it; did you mean --%s?", text, meant)
	}
	return fmt.Errorf("%q is no flag of it", text)
}

// Config says how kube-controller-manager and kube-scheduler run inside a server.
type Config struct {
	// ClusterCIDR has the addresses of pods, of which each node gets a part: one range, or one of IPv4 and one of IPv6. nil: nodes
	// get none.
	ClusterCIDR []string
	// ServiceCIDR has the addresses of Services, with which those of pods must not overlap.
	ServiceCIDR []string

	// ManagerArgs are flags of kube-controller-manager, and SchedulerArgs of kube-scheduler: NAME=VALUE.
	ManagerArgs, SchedulerArgs []string
	// SchedulerConfig is the file of a KubeSchedulerConfiguration; empty: upstream's defaults.
	SchedulerConfig string

	// Authority is the file of the certificate that signs those of kubelets and others, and AuthorityKey that of its key. Empty:
	// none is signed unless ManagerArgs name others.
	Authority, AuthorityKey string
	// Without are controllers of kube-controller-manager, by upstream's names, that the server runs itself or is not to run.
	Without []string
}
