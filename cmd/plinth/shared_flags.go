package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/simulation"
	"github.com/plinth-io/plinth/server/upstream"
)

// Flags of several commands stand here once, each as a function of what the commands do not share.

// schemes are what DSNs begin with.
var schemes = values("sqlite://", "postgres://", "mysql://")

// dsnFlag names a database. help says what for.
func dsnFlag(dsn *string, help string) Flag { return dsnFlagOf(text(dsn, ""), help) }

func dsnFlagOf(set setting, help string) Flag {
	return Flag{Name: "dsn", Set: set, Help: help, Complete: schemes}
}

// dataDirName is also looked for where not all commands have the flag.
const dataDirName = "data-dir"

// dataDirFlag names plinth's directory.
func dataDirFlag(dir *string, help string) Flag {
	return Flag{Name: dataDirName, Set: text(dir, "plinth-data"), Help: help}
}

// listenFlag says where to serve.
func listenFlag(address *string, byDefault, help string) Flag {
	return Flag{Name: "listen", Set: text(address, byDefault), DropIn: dropIn{lacks: true}, Help: help}
}

// simulateNodesFlag says how many nodes are simulated.
func simulateNodesFlag(n *int, byDefault int, help string) Flag {
	return Flag{Name: "simulate-nodes", Set: number(n, byDefault), DropIn: dropIn{lacks: true}, Help: help, Check: func() string {
		if *n < 0 || *n > simulation.MostNodes {
			return fmt.Sprintf(" %d: write a number from 0 to %d", *n, simulation.MostNodes)
		}
		return ""
	}}
}

// clusterCIDRFlag has the addresses of pods.
func clusterCIDRFlag(ranges *[]string, check func() string, help string) Flag {
	return Flag{Name: "cluster-cidr", Set: list(ranges, nil), DropIn: dropIn{lacks: true}, Check: check, Help: help}
}

func forceFlag(force *bool, help string) Flag {
	return Flag{Name: "force", Set: boolean(force, false), Help: help}
}

func databaseTimeoutFlag(d *time.Duration) Flag {
	return Flag{Name: "database-timeout", Set: period(d, time.Minute), DropIn: dropIn{lacks: true},
		Help: "how long to wait at the start for a database that cannot be reached, does not answer, or is locked"}
}

func newDatabaseFlag(permitted *bool) Flag {
	return Flag{Name: "new-database", Set: boolean(permitted, false), DropIn: dropIn{lacks: true},
		Help: "serve another database than the one served before from this data directory, even a new and empty one; for one start: left in place it permits every later change of the database, too"}
}

func shutdownTimeoutFlag(d *time.Duration, help string) Flag {
	return Flag{Name: "shutdown-timeout", Set: period(d, 30*time.Second), DropIn: dropIn{lacks: true}, Help: help}
}

func tlsMinVersionFlag(version *string, byDefault, help string) Flag {
	return Flag{Name: "tls-min-version", Set: text(version, byDefault), Help: "lowest `version` of TLS: " + help}
}

// verbosityFlag is --v. whose says what is logged besides plinth's own records.
func verbosityFlag(v *logging.Verbosity, whose string) Flag {
	return Flag{Name: "v", Short: "v", Set: value(v),
		Help: "log more than an operator needs: from 1 on what plinth does, and what " + whose + " at levels up to this `number`"}
}

func logFormatFlag(format *logging.Format) Flag {
	return Flag{Name: "log-format", Set: value(format), DropIn: dropIn{lacks: true}, Help: logFormatHelp, Complete: values(string(logging.Text), string(logging.JSON))}
}

const logFormatHelp = "`format` of the log on standard error: text or json"

func featureGatesFlag(set setting) Flag {
	return Flag{Name: "feature-gates", Set: set, DropIn: dropIn{lacks: true}, Help: "alpha and beta features of Kubernetes to switch on or off: `name=bool,...`"}
}

// encryptionConfigFlag names a file. what says with what.
func encryptionConfigFlag(file *string, what string) Flag {
	return Flag{Name: "encryption-provider-config", Set: text(file, ""), Help: "`file` " + what}
}

func eventTTLFlag(ttl *time.Duration, help string) Flag {
	return Flag{Name: "event-ttl", Set: period(ttl, time.Hour), Help: help}
}

// etcdFlag names an etcd, or a file in place of one.
func etcdFlag(urls *string, help string) Flag {
	return Flag{Name: "etcd", Set: text(urls, ""), Complete: fileNames, Help: help}
}

// etcdClientFlags are kube-apiserver's flags for the certificates of an etcd.
func etcdClientFlags(o *upstream.Etcd) []Flag {
	return []Flag{
		{Name: "etcd-cafile", Set: text(&o.CAFile, ""), Help: "`file` with the authorities of the etcd's certificate; without it, those of the system"},
		{Name: "etcd-certfile", Set: text(&o.CertFile, ""), Help: "`file` with the certificate to show to the etcd"},
		{Name: "etcd-keyfile", Set: text(&o.KeyFile, ""), Help: "`file` with the key of --etcd-certfile"},
	}
}

func prefixFlag(prefix *string, help string) Flag {
	return Flag{Name: "prefix", Set: text(prefix, upstream.DefaultPrefix), Help: help}
}

func followFlag(follow *bool, help string) Flag {
	return Flag{Name: "follow", Set: boolean(follow, false), Help: help}
}

// reportOnlyFlag is --dry-run of commands that write a database.
func reportOnlyFlag(only *bool) Flag {
	return dryRunFlag(boolean(only, false), "print the report, and write nothing")
}

func dryRunFlag(set setting, help string, words ...string) Flag {
	return Flag{Name: "dry-run", Set: set, Help: help, Complete: values(words...)}
}

// outputFlag asks for a program's format in place of text.
func outputFlag(format *string, help string, formats ...string) Flag {
	return Flag{Name: "output", Short: "o", Set: text(format, ""), Help: help, Complete: values(formats...)}
}

// outputHelp is that of commands that print text by default.
const outputHelp = "`format` to print in, json or yaml; by default text"

func historyFlag(set setting, help string) Flag {
	return Flag{Name: "history", Set: set, DropIn: dropIn{lacks: true}, Help: help}
}

func kubeconfigFlag(file *string) Flag { return kubeconfigFlagOf(text(file, ""), kubeconfigUsage) }

func kubeconfigFlagOf(set setting, help string) Flag {
	return Flag{Name: "kubeconfig", Set: set, Help: help}
}

func memoryFlag(bytes *memorySize, help string) Flag {
	return Flag{Name: "memory", Set: value(bytes), DropIn: dropIn{lacks: true}, Help: help}
}

func leaseCommitDelayFlag(set setting, help string) Flag {
	return Flag{Name: "lease-commit-delay", Set: set, DropIn: dropIn{lacks: true}, Help: help}
}

func contextFlag(name *string) Flag {
	return Flag{Name: "context", Set: text(name, ""), Help: "`name` of a context in the kubeconfig; by default the current one"}
}

func serverFlag(url *string, help string) Flag {
	return Flag{Name: "server", Set: text(url, ""), Help: help}
}

func namespaceFlag(namespace *string, help string) Flag {
	return Flag{Name: "namespace", Set: text(namespace, ""), Help: help}
}

func userFlag(user *string, help string) Flag {
	return Flag{Name: "user", Set: text(user, ""), Help: help}
}

func sinceFlag(moment *string, help string) Flag {
	return Flag{Name: "since", Set: text(moment, ""), Complete: moments, Help: help}
}

func atFlag(moment *string, help string) Flag {
	return Flag{Name: "at", Set: text(moment, ""), Complete: moments, Help: help}
}

func fromFlag(set setting, help string, words cobra.CompletionFunc) Flag {
	return Flag{Name: "from", Set: set, Complete: words, Help: help}
}

func toFlag(set setting, help string, words cobra.CompletionFunc) Flag {
	return Flag{Name: "to", Set: set, Complete: words, Help: help}
}

func limitFlag(most *int, help string) Flag {
	return Flag{Name: "limit", Set: number(most, 0), Help: help}
}

func showManagedFlag(show *bool, help string) Flag {
	return Flag{Name: "show-managed-fields", Set: boolean(show, false), Help: help}
}

// versionFlag is plinth's and that of both drop-ins. No variable sets it: images have one of that name.
func versionFlag(set setting) Flag {
	return Flag{Name: "version", Set: set, DropIn: dropIn{lacks: true}, Help: "print the version and exit"}
}
