package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

// flags returns the flags of serve, in the order of its help. Flags of kube-apiserver have its names.
func (o *serveOptions) flags() []Flag {
	c := &o.config
	theirs := newUpstreamSet(c)
	all := slices.Concat(
		grouped("Database and files", o.databaseFlags()),
		grouped("Backups", backupFlags(c)),
		grouped("Encryption at rest", encryptionFlags(&c.Encryption)),
		grouped("Network and TLS", networkFlags(c), servingFlags(&c.Serving), []Flag{uiFlag(&o.ui)}),
		grouped("Controllers and Services", controllerFlags(c)),
		grouped("Control plane", o.components.flags()),
		grouped("API versions", o.versionFlags()),
		grouped("Authentication", theirs.authenticationFlags()),
		grouped("Tokens", tokenFlags(&c.Tokens)),
		grouped("Authorization", theirs.authorizationFlags()),
		grouped("Admission", o.admissionFlags(), theirs.tolerationFlags()),
		grouped("Kubelets", kubeletFlags(c)),
		grouped("Limits and shutdown", limitFlags(c)),
		grouped("Audit", theirs.auditFlags()),
		grouped("Logs", []Flag{verbosityFlag(&o.logging.Verbosity, "the libraries of Kubernetes log"), logFormatFlag(&o.logging.Format)}),
		grouped("Debugging", debuggingFlags(c)),
	)
	return append(all, theirs.hidden(all)...)
}

func (o *serveOptions) databaseFlags() []Flag {
	c := &o.config
	dsn := dsnFlag(&c.DSN, "`database` that holds all state: sqlite://PATH, postgres://… or mysql://…; by default plinth.db in the data directory")
	dsn.Secret, dsn.DropIn.lacks = true, true
	dir := dataDirFlag(&c.DataDir, "`directory` of the certificates, the kubeconfig and, without --dsn, the database")
	dir.DropIn.lacks, dir.Check = true, notBlank(&c.DataDir, "a path, such as plinth-data")
	ttl := eventTTLFlag(&c.EventTTL, "how long events are kept after their last change, at least 1s; 0: for ever")
	ttl.Check = func() string {
		if c.EventTTL < 0 {
			return fmt.Sprintf(" %v is negative; write a duration such as 1h, or 0 to keep events for ever", c.EventTTL)
		}
		return ""
	}
	return []Flag{
		dsn,
		databaseTimeoutFlag(&c.DatabaseTimeout),
		newDatabaseFlag(&c.NewDatabase),
		{Name: "new-authority", Set: boolean(&c.NewAuthority, false), DropIn: dropIn{lacks: true},
			Help: "serve a database that several plinths can share with another authority (pki/ca.crt) than theirs; for one start: left in place it permits every later change, too"},
		dir,
		historyFlag(period(&c.History, 5*time.Minute), "how long old versions of objects stay readable, for watches that resume and paginated lists; negative: for ever"),
		memoryFlag((*memorySize)(&c.Memory), "`size` that the process keeps within, such as 512MiB: objects that do not fit are read from the database; by default nine tenths of what its container may use, else there is no bound"),
		{Name: "keep", Set: repeated(&o.keep.rules, nil), For: &c.Keep, DropIn: dropIn{lacks: true},
			Help: "which old versions of objects stay for reading the past, longer than --history: `rules` such as deployments.apps=90d for a time, configmaps=10 for a number of versions of each object, pods=7d/20 for both, *=7d for all other resources, secrets=0 for none; separate them by commas or repeat the flag; these rules replace those by default, " + keepByDefault + "; none: no old versions"},
		{Name: "keep-size", Set: value(&o.keep.size), For: &c.KeepSize, DropIn: dropIn{lacks: true},
			Help: "`size` that the keys and values of all versions kept by --keep take at most, such as 1GiB: beyond it those go that would go first; 0: no bound; by default the larger of 256MiB and a tenth of what the objects take, but no bound with rules of your own in --keep or --keep-file"},
		{Name: "keep-file", Set: text(&o.keep.file, ""), DropIn: dropIn{lacks: true},
			Help: "`file` with rules as in --keep, one on each line; # begins a comment"},
		ttl,
		leaseCommitDelayFlag(period(&c.LeaseCommitDelay, 0), "how long the renewal of a Lease may wait, and its answer with it, to be written together with other changes; at most 5s, and a tenth of the Lease's duration; 0: not at all; with --cluster 1s by default"),
	}
}

func backupFlags(c *server.Config) []Flag {
	return []Flag{
		{Name: "backup-interval", Set: period(&c.BackupInterval, 0), DropIn: dropIn{lacks: true},
			Help: "how often to write a backup into --backup-dir, as plinth backup does; 0: never"},
		{Name: "backup-dir", Set: text(&c.BackupDir, ""), DropIn: dropIn{lacks: true},
			Help: "`directory` of the backups that --backup-interval asks for; by default backups in the data directory"},
		{Name: "backup-keep", Set: number(&c.BackupKeep, 7), DropIn: dropIn{lacks: true},
			Help: "`number` of backups to keep in --backup-dir, the newest; 0: all of them"},
		{Name: "scrub-interval", Set: period(&c.ScrubInterval, 0), DropIn: dropIn{lacks: true},
			Help: "how often to search the database for damage, as plinth verify does; 0: never"},
	}
}

func networkFlags(c *server.Config) []Flag {
	return []Flag{
		listenFlag(&c.Listen, "127.0.0.1:6443", "`host:port` to serve on; port 0 takes a free port, which the kubeconfig then names"),
		{Name: "advertise-address", Set: ip(&c.AdvertiseAddress, nil),
			Help:   "IP `address` at which members of the cluster reach plinth, the endpoint of the kubernetes Service; by default that of --listen, or the machine's if that is unspecified or loopback",
			DropIn: dropIn{help: "IP `address` at which members of the cluster reach plinth; by default that of --bind-address, or the machine's if that is unspecified or loopback"}},
		{Name: "tls-san", Set: list(&c.SANs, nil), DropIn: dropIn{lacks: true},
			Help: "more DNS `names` and IP addresses for the serving certificate; separate them by commas or repeat the flag"},
	}
}

func controllerFlags(c *server.Config) []Flag {
	names := []string{"*", "none"}
	for _, name := range controllers.Names() {
		names = append(names, name, "-"+name)
	}
	theirRange := "10.0.0.0/24"
	return []Flag{
		{Name: "controllers", Set: list(&c.Controllers, []string{"*"}), Complete: values(names...), DropIn: dropIn{lacks: true},
			Help: "`names` of the controllers to run: * for those that run by default, NAME to add one, -NAME to leave one out; none for no controllers"},
		{Name: "service-cluster-ip-range", Set: list(&c.ServiceClusterIPRange, []string{allocate.DefaultAddresses}), DropIn: dropIn{byDefault: &theirRange},
			Help: "`CIDR` of the cluster IPs of Services; for dual stack one of IPv4 and one of IPv6, separated by a comma"},
		{Name: "service-node-port-range", Set: text(&c.ServiceNodePortRange, allocate.DefaultNodePorts),
			Help: "range of the node ports of Services, `first-last`"},
	}
}

func (o *serveOptions) versionFlags() []Flag {
	c := &o.config
	c.RuntimeConfig = map[string]string{}
	return []Flag{
		{Name: "runtime-config", Set: value((*cliflag.ConfigurationMap)(&c.RuntimeConfig)),
			Help: "API versions and resources to switch on or off: `key=bool,...` with GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta or api/alpha as keys"},
		{Name: "serve-removed-apis", Set: list(&c.ServeRemovedAPIs, nil), DropIn: dropIn{lacks: true},
			Help: "API `versions` to serve although Kubernetes has removed them, such as extensions/v1beta1 or batch/v1beta1/cronjobs, or all; separate them by commas or repeat the flag"},
		featureGatesFlag(text(&o.gates, "")),
		{Name: "emulated-version", Set: list(&o.release.emulated, nil),
			Help: "`release` of Kubernetes to behave as, such as 1.36: its API versions, features and validation; down to three releases before plinth's own; by default plinth's own"},
		{Name: "min-compatibility-version", Set: list(&o.release.compatible, nil),
			Help: "oldest `release` that may serve the same database beside plinth or after it: objects are stored in versions that it knows; by default the one before --emulated-version"},
		{Name: "runtime-config-emulation-forward-compatible", Set: boolean(&c.Forward.Configured, false),
			Help: "serve API versions that --runtime-config names even if they are newer than --emulated-version"},
		{Name: "emulation-forward-compatible", Set: boolean(&c.Forward.Successors, false),
			Help: "also serve beta and stable versions that are newer than --emulated-version, of resources that it has in an older version"},
	}
}

func (o *serveOptions) admissionFlags() []Flag {
	c, no := &o.config, "false"
	return []Flag{
		{Name: "enable-admission-plugins", Set: list(&c.EnableAdmissionPlugins, nil), Complete: values(optionalPlugins()...),
			Help: "admission `plugins` to run besides the default ones, out of " + strings.Join(optionalPlugins(), ", ")},
		{Name: "disable-admission-plugins", Set: list(&c.DisableAdmissionPlugins, nil), Complete: values(admission.DefaultNames()...),
			Help: "default admission `plugins` not to run, out of " + strings.Join(admission.DefaultNames(), ", ")},
		{Name: "admission-control-config-file", Set: text(&c.AdmissionConfigFile, ""),
			Help: "`file` with an AdmissionConfiguration, which configures admission plugins"},
		{Name: "allow-privileged", Set: boolean(&o.privileged, true), DropIn: dropIn{byDefault: &no},
			Help: "allow privileged containers, as far as pod security admits them"},
	}
}

// optionalPlugins returns the admission plugins that do not run by default.
func optionalPlugins() []string {
	return slices.DeleteFunc(admission.Names(), func(name string) bool { return slices.Contains(admission.DefaultNames(), name) })
}

func kubeletFlags(c *server.Config) []Flag {
	return []Flag{
		{Name: "kubelet-client-certificate", Set: text(&c.KubeletCertificate, ""),
			Help: "`file` with the client certificate that plinth presents to kubelets; by default one signed by its own authority"},
		{Name: "kubelet-client-key", Set: text(&c.KubeletKey, ""),
			Help: "`file` with the private key of --kubelet-client-certificate"},
		{Name: "kubelet-certificate-authority", Set: text(&c.KubeletCA, ""),
			Help: "`file` with the authority that signed the serving certificates of kubelets; by default these are not verified"},
		{Name: "kubelet-preferred-address-types", Set: list(&c.KubeletAddressTypes, server.NodeAddressTypes), Complete: values(server.NodeAddressTypes...),
			Help: "`types` of node addresses at which to look for a kubelet, in order of preference"},
	}
}

func limitFlags(c *server.Config) []Flag {
	return []Flag{
		{Name: "request-timeout", Set: period(&c.RequestTimeout, time.Minute),
			Help: "how long a request other than a watch may take"},
		{Name: "max-requests-inflight", Set: number(&c.MaxReads, 400),
			Help: "`number` of requests that may run at once, together with --max-mutating-requests-inflight; of read requests without priority and fairness"},
		{Name: "max-mutating-requests-inflight", Set: number(&c.MaxWrites, 200),
			Help: "`number` of requests that may run at once, together with --max-requests-inflight; of write requests without priority and fairness"},
		{Name: "enable-priority-and-fairness", Set: value((*not)(&c.NoFairness)),
			Help: "divide the server among its clients by FlowSchemas and PriorityLevelConfigurations"},
		{Name: "max-connections", Set: number(&c.MaxConnections, 4096), DropIn: dropIn{lacks: true},
			Help: "`number` of connections of clients that may be open, or fewer if the limit of open files is low; above it, connections without a request for the longest time are closed; negative: any number"},
		{Name: "http2-max-streams-per-connection", Set: number(&c.MaxStreams, 1000),
			Help: "`number` of requests that may be under way on one connection of HTTP/2"},
		{Name: "goaway-chance", Set: fraction(&c.GoAwayChance, 0),
			Help: "`chance`, from 0 to 0.02, that a request ends its connection of HTTP/2, so that load balancers spread clients anew; for several servers behind one address"},
		{Name: "shutdown-delay-duration", Set: period(&c.ShutdownDelay, 0),
			Help: "how long to keep serving after SIGTERM, with /readyz failing, before connections are refused"},
		shutdownTimeoutFlag(&c.ShutdownTimeout, "how long a stop may take, the delay included; requests that still run then are cut off"),
	}
}

func debuggingFlags(c *server.Config) []Flag {
	yes := "true"
	return []Flag{
		{Name: "profiling", Set: boolean(&c.Debugging.Profiling, false), DropIn: dropIn{byDefault: &yes},
			Help: "serve profiles at /debug/pprof, and /debug/flags/v, which changes --v of a running server, to users who are authorized for these paths"},
		{Name: "contention-profiling", Set: boolean(&c.Debugging.Contention, false),
			Help: "record where goroutines wait for each other, too, if profiling is on; this slows plinth down"},
		{Name: "serve-snapshots", Set: boolean(&c.ServeSnapshots, false), DropIn: dropIn{lacks: true},
			Help: "serve /plinth/snapshots, where users who may create snapshots in the API group plinth.io take snapshots of all objects and go back to them; for servers of tests"},
	}
}
