package main

import (
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/components"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/simulation"
)

// makeComponents makes the components of --cluster. It is nil without the tag cluster, which releases are built with: linked
// components cost nothing while they are off, but compiling them takes minutes, which tests and lint need not wait for.
var makeComponents func(components.Config) ([]controllers.Component, error)

// withoutComponents is what a plinth without them says of what needs them.
const withoutComponents = "this plinth was built without kube-controller-manager and kube-scheduler"

// clusterCommitDelay is --lease-commit-delay with --cluster, unless it is given: nearly all that an idle cluster writes are renewals.
const clusterCommitDelay = time.Second

// componentOptions say which components run inside.
type componentOptions struct {
	on     bool
	config components.Config
	nodes  int
}

// flags returns the flags of the components.
func (o *componentOptions) flags() []Flag {
	c := &o.config
	return []Flag{
		{Name: "cluster", Set: boolean(&o.on, false), DropIn: dropIn{lacks: true},
			Help: "run kube-controller-manager and kube-scheduler inside, on one replica at a time: a whole control plane"},
		clusterCIDRFlag(&c.ClusterCIDR, o.only(&c.ClusterCIDR),
			"`CIDR` of the addresses of pods, of which each node gets a part; for dual stack one of IPv4 and one of IPv6, separated by a comma; by default nodes get none; with --cluster"),
		{Name: "kube-controller-manager-arg", Set: repeated(&c.ManagerArgs, nil), DropIn: dropIn{lacks: true}, Check: o.only(&c.ManagerArgs),
			Help: "flag of kube-controller-manager, `name=value`, such as node-monitor-grace-period=20s; repeat it for more; with --cluster"},
		{Name: "kube-scheduler-arg", Set: repeated(&c.SchedulerArgs, nil), DropIn: dropIn{lacks: true}, Check: o.only(&c.SchedulerArgs),
			Help: "flag of kube-scheduler, `name=value`; repeat it for more; with --cluster"},
		{Name: "kube-scheduler-config", Set: text(&c.SchedulerConfig, ""), DropIn: dropIn{lacks: true}, Check: func() string {
			return o.alone(c.SchedulerConfig != "")
		},
			Help: "`file` with a KubeSchedulerConfiguration; its clientConnection and leaderElection have no effect; with --cluster"},
		simulateNodesFlag(&o.nodes, 0, "`number` of nodes to simulate, node-1, node-2 and so on, whose pods become ready and end without containers; for demos and for tests of scheduling"),
	}
}

// only is the Check of a list that has no effect without --cluster.
func (o *componentOptions) only(list *[]string) func() string {
	return func() string { return o.alone(len(*list) > 0) }
}

func (o *componentOptions) alone(given bool) string {
	if given && !o.on {
		return " has no effect without --cluster: write both, or neither"
	}
	return ""
}

// make makes the components of a server.
func (o *componentOptions) make(flags *flagTable, c *server.Config) (all []controllers.Component, err error) {
	if o.on {
		if all, err = o.makeCluster(flags, c); err != nil {
			return nil, err
		}
	}
	if o.nodes > 0 {
		all = append(all, simulation.Config{Nodes: o.nodes, Ranges: len(o.config.ClusterCIDR) > 0}.Component())
	}
	return all, nil
}

func (o *componentOptions) makeCluster(flags *flagTable, c *server.Config) ([]controllers.Component, error) {
	if makeComponents == nil {
		return nil, usagef(withoutComponents + "; releases have both, and so has what make build-cluster builds")
	}
	o.config.ServiceCIDR = c.ServiceClusterIPRange
	if len(o.config.ServiceCIDR) == 0 {
		o.config.ServiceCIDR = []string{allocate.DefaultAddresses}
	}
	o.config.Authority, o.config.AuthorityKey = filepath.Join(c.DataDir, "pki", "ca.crt"), filepath.Join(c.DataDir, "pki", "ca.key")
	o.config.Without = controllers.OwnOf(c.Controllers)
	made, err := makeComponents(o.config)
	if err != nil {
		return nil, &usageError{flags.nameFlags(&o.config, err)}
	}
	return made, nil
}
