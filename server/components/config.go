package components

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
