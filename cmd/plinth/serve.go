package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/memory"
	"github.com/plinth-io/plinth/server/tokens"
)

const serveHelp = `Serve the Kubernetes API over HTTPS until SIGTERM or SIGINT.

Every flag can also be set by the environment variable in brackets. The flag wins.

The database (--dsn) is one of
  sqlite://plinth.db                   a file, for one process at a time
  postgres://user:password@host/db     or postgresql://; any number of plinths may share it
  mysql://user:password@host/db        or mariadb://; MySQL 8, MariaDB 10.6 and later; likewise
The password may also be in the variable PLINTH_DB_PASSWORD, or in a file that
PLINTH_DB_PASSWORD_FILE names.

The data directory has the certificates (pki/) and the kubeconfig of the admin. The first
start makes both; later starts keep them.`

func newServe() *cobra.Command {
	o := newServeOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Kubernetes API",
		Long:  serveHelp,
		Args:  noArgs,
		Example: `  plinth serve
  plinth serve --dsn postgres://plinth@db.example.com/plinth --listen 0.0.0.0:6443 \
    --tls-san plinth.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEnv(cmd); err != nil {
				return err
			}
			if err := o.release.emulate(); err != nil {
				return err
			}
			if err := setFeatureGates(o.gates); err != nil {
				return nameFlags(cmd, err)
			}
			var err error
			if o.config.Keep, err = o.keep.parse(cmd); err != nil {
				return err
			}
			o.begin(cmd.ErrOrStderr())
			warnOfVariables(cmd, os.Environ(), o.config.Log)
			o.config.Flags = shownFlags(cmd)
			begun := func() { warnOfPassword(cmd, o.config.DSN, o.config.Log) }
			return nameFlags(cmd, serve(cmd.Context(), o.config, o.log.Verbosity, cmd.OutOrStdout(), begun))
		},
	}
	o.addFlags(cmd)
	documentEnv(cmd)
	groupFlags(cmd)
	completeServe(cmd)
	return cmd
}

// serveOptions is what the flags of serve set.
type serveOptions struct {
	config     server.Config
	log        logging.Options
	keep       keepOptions
	release    releaseOptions
	gates      string
	privileged bool
}

func newServeOptions() *serveOptions {
	return &serveOptions{
		config: server.Config{Audit: audit.NewOptions(), Authorization: authz.NewOptions()},
		log:    logging.Options{Format: logging.Text},
	}
}

func (o *serveOptions) addFlags(cmd *cobra.Command) {
	c := &o.config
	addServeFlags(cmd, c)
	addTokenFlags(cmd, &c.Tokens)
	addAuthenticationFlags(cmd, c)
	addAuthorizationFlags(cmd, c.Authorization)
	addUpstreamFlags(cmd, c)
	addFairnessFlags(cmd, c)
	addEncryptionFlags(cmd, &c.Encryption)
	addKeepFlags(cmd, &o.keep)
	o.release.addFlags(cmd, c)
	cmd.Flags().StringVar(&o.gates, "feature-gates", "", "alpha and beta features of Kubernetes to switch on or off: `name=bool,...`")
	cmd.Flags().BoolVar(&o.privileged, "allow-privileged", true, "allow privileged containers, as far as pod security admits them")
	addLogFlags(cmd, &o.log)
	addDebuggingFlags(cmd, &c.Debugging, c)
}

// begin opens the log, and sets what upstream's libraries keep for the whole process.
func (o *serveOptions) begin(stderr io.Writer) {
	o.log.Dial = logging.NewDial(o.log.Verbosity)
	o.config.Debugging.SetVerbosity = o.log.Dial.Set
	o.config.Log = logging.New(stderr, o.log)
	capabilities.Setup(o.privileged, 0)
}

// setFeatureGates switches upstream's features, for the whole process.
func setFeatureGates(list string) error {
	for _, item := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(item, "=")
		if _, err := strconv.ParseBool(strings.TrimSpace(value)); err != nil && item != "" {
			return usagef("--feature-gates: %q: write %s=true or %[2]s=false", item, strings.TrimSpace(name))
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(list); err != nil {
		return usagef("--feature-gates: %v", err)
	}
	return nil
}

// addServeFlags adds the flags of serve itself. flagGroups has the group of each.
func addServeFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.DSN, "dsn", "", "`database` that holds all state: sqlite://PATH, postgres://… or mysql://…; by default plinth.db in the data directory")
	f.DurationVar(&c.DatabaseTimeout, "database-timeout", time.Minute, "how long to wait at the start for a database that cannot be reached, does not answer, or is locked")
	f.BoolVar(&c.NewDatabase, "new-database", false, "serve another database than the one served before from this data directory, even a new and empty one; for one start: left in place it permits every later change of the database, too")
	f.BoolVar(&c.NewAuthority, "new-authority", false, "serve a database that several plinths can share with another authority (pki/ca.crt) than theirs; for one start: left in place it permits every later change, too")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:6443", "`host:port` to serve on; port 0 takes a free port, which the kubeconfig then names")
	f.IPVar(&c.AdvertiseAddress, "advertise-address", nil, "IP `address` at which members of the cluster reach plinth, the endpoint of the kubernetes Service; by default that of --listen, or the machine's if that is unspecified or loopback")
	f.StringVar(&c.DataDir, "data-dir", "plinth-data", "`directory` of the certificates, the kubeconfig and, without --dsn, the database")
	f.StringSliceVar(&c.SANs, "tls-san", nil, "more DNS `names` and IP addresses for the serving certificate; separate them by commas or repeat the flag")
	f.DurationVar(&c.History, "history", 5*time.Minute, "how long old versions of objects stay readable, for watches that resume and paginated lists; negative: for ever")
	f.Var((*memorySize)(&c.Memory), "memory", "`size` that the process keeps within, such as 512MiB: objects that do not fit are read from the database; by default nine tenths of what its container may use, else there is no bound")
	f.DurationVar(&c.LeaseCommitDelay, "lease-commit-delay", 0, "how long the renewal of a Lease may wait, and its answer with it, to be written together with other changes; at most 5s, and a tenth of the Lease's duration; 0: not at all")
	f.DurationVar(&c.EventTTL, "event-ttl", time.Hour, "how long events are kept after their last change, at least 1s; 0: for ever")
	f.DurationVar(&c.BackupInterval, "backup-interval", 0, "how often to write a backup into --backup-dir, as plinth backup does; 0: never")
	f.StringVar(&c.BackupDir, "backup-dir", "", "`directory` of the backups that --backup-interval asks for; by default backups in the data directory")
	f.IntVar(&c.BackupKeep, "backup-keep", 7, "`number` of backups to keep in --backup-dir, the newest; 0: all of them")
	f.DurationVar(&c.ScrubInterval, "scrub-interval", 0, "how often to search the database for damage, as plinth verify does; 0: never")
	f.StringSliceVar(&c.Controllers, "controllers", []string{"*"}, "`names` of the controllers to run: * for those that run by default, NAME to add one, -NAME to leave one out; none for no controllers")
	c.RuntimeConfig = map[string]string{}
	f.Var((*cliflag.ConfigurationMap)(&c.RuntimeConfig), "runtime-config", "API versions and resources to switch on or off: `key=bool,...` with GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta or api/alpha as keys")
	f.StringSliceVar(&c.ServeRemovedAPIs, "serve-removed-apis", nil, "API `versions` to serve although Kubernetes has removed them, such as extensions/v1beta1 or batch/v1beta1/cronjobs, or all; separate them by commas or repeat the flag")
	f.StringSliceVar(&c.EnableAdmissionPlugins, "enable-admission-plugins", nil, "admission `plugins` to run besides the default ones, out of "+strings.Join(optionalPlugins(), ", "))
	f.StringSliceVar(&c.DisableAdmissionPlugins, "disable-admission-plugins", nil, "default admission `plugins` not to run, out of "+strings.Join(admission.DefaultNames(), ", "))
	f.StringVar(&c.AdmissionConfigFile, "admission-control-config-file", "", "`file` with an AdmissionConfiguration, which configures admission plugins")
	f.StringVar(&c.KubeletCertificate, "kubelet-client-certificate", "", "`file` with the client certificate that plinth presents to kubelets; by default one signed by its own authority")
	f.StringVar(&c.KubeletKey, "kubelet-client-key", "", "`file` with the private key of --kubelet-client-certificate")
	f.StringVar(&c.KubeletCA, "kubelet-certificate-authority", "", "`file` with the authority that signed the serving certificates of kubelets; by default these are not verified")
	f.StringSliceVar(&c.KubeletAddressTypes, "kubelet-preferred-address-types", server.NodeAddressTypes, "`types` of node addresses at which to look for a kubelet, in order of preference")
	f.StringSliceVar(&c.ServiceClusterIPRange, "service-cluster-ip-range", []string{allocate.DefaultAddresses}, "`CIDR` of the cluster IPs of Services; for dual stack one of IPv4 and one of IPv6, separated by a comma")
	f.StringVar(&c.ServiceNodePortRange, "service-node-port-range", allocate.DefaultNodePorts, "range of the node ports of Services, `first-last`")
	f.DurationVar(&c.ShutdownDelay, "shutdown-delay-duration", 0, "how long to keep serving after SIGTERM, with /readyz failing, before connections are refused")
	f.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", 30*time.Second, "how long a stop may take, the delay included; requests that still run then are cut off")
	f.DurationVar(&c.RequestTimeout, "request-timeout", time.Minute, "how long a request other than a watch may take")
	f.IntVar(&c.MaxReads, "max-requests-inflight", 400, "`number` of requests that may run at once, together with --max-mutating-requests-inflight; of read requests without priority and fairness")
	f.IntVar(&c.MaxWrites, "max-mutating-requests-inflight", 200, "`number` of requests that may run at once, together with --max-requests-inflight; of write requests without priority and fairness")
}

// optionalPlugins returns the admission plugins that do not run by default.
func optionalPlugins() []string {
	return slices.DeleteFunc(admission.Names(), func(name string) bool { return slices.Contains(admission.DefaultNames(), name) })
}

// addTokenFlags adds the flags about tokens, under kube-apiserver's names.
func addTokenFlags(cmd *cobra.Command, o *tokens.Options) {
	f := cmd.Flags()
	f.StringVar(&o.SigningKeyFile, "service-account-signing-key-file", "", "`file` with the private key that signs service account tokens; by default pki/sa.key in the data directory")
	f.StringArrayVar(&o.KeyFiles, "service-account-key-file", nil, "`file` with keys that verify service account tokens, besides the signing key; repeat the flag for more; by default the keys of all plinths on the database")
	f.StringArrayVar(&o.Issuers, "service-account-issuer", []string{tokens.DefaultIssuer}, "`URL` of the issuer of service account tokens; repeat the flag for other issuers to accept")
	f.StringSliceVar(&o.Audiences, "api-audiences", nil, "`audiences` a token must be issued for, separated by commas; by default the issuers")
	f.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", 0, "longest life of a service account token, at least 1h; 0: no limit")
	o.ExtendExpiration = f.Bool("service-account-extend-token-expiration", true, "extend the tokens of pods to a year, for clients that do not read them again")
	f.StringVar(&o.JWKSURI, "service-account-jwks-uri", "", "https `URL` at which the issuer publishes its keys; by default this server")
	f.StringVar(&o.TokenFile, "token-auth-file", "", "CSV `file` of static bearer tokens: token,user,uid,\"group1,group2\"")
}

// tolerationFlags are those of the plugin DefaultTolerationSeconds. They are variables of upstream's package, and registered
// once, so that their defaults are not what another command of this process has set.
var tolerationFlags = func() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	defaulttolerationseconds.RegisterFlags(f)
	return f
}()

// addUpstreamFlags adds the flags that upstream's packages define, with the texts of upstreamUsage.
func addUpstreamFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	c.Audit.AddFlags(f)
	tolerationFlags.VisitAll(func(upstream *pflag.Flag) {
		own := *upstream
		f.AddFlag(&own)
	})
	for name, usage := range upstreamUsage {
		f.Lookup(name).Usage = usage
	}
}

func addLogFlags(cmd *cobra.Command, l *logging.Options) {
	f := cmd.Flags()
	f.VarP(&l.Verbosity, "v", "v", "log more than an operator needs: from 1 on what plinth does, and what the libraries of Kubernetes log at levels up to this `number`")
	f.Var(&l.Format, "log-format", "`format` of the log on standard error: text or json")
}

// serve runs a server until ctx ends, then stops it gracefully. It calls begun when the server has
// started: what begun says must not hide why a start has failed.
func serve(ctx context.Context, c server.Config, verbosity logging.Verbosity, stdout io.Writer, begun func()) error {
	if strings.TrimSpace(c.DataDir) == "" {
		return usagef("--data-dir is empty; write a path, such as plinth-data")
	}
	if c.EventTTL < 0 {
		return usagef("--event-ttl %v is negative; write a duration such as 1h, or 0 to keep events for ever", c.EventTTL)
	} else if c.EventTTL == 0 {
		c.EventTTL = -1
	}
	return runServer(ctx, c, verbosity, func(s *server.Server) {
		begun()
		fmt.Fprintf(stdout, "export KUBECONFIG=%s   # serving %s\n", shellQuote(s.KubeconfigPath()), s.URL())
	})
}

// runServer runs a server until ctx ends, then stops it gracefully. It calls ready when the server
// is.
func runServer(ctx context.Context, c server.Config, verbosity logging.Verbosity, ready func(*server.Server)) error {
	silence := logging.Libraries(c.Log, verbosity)
	c.Memory = limitMemory(c.Memory, c.Log)
	defer memory.Keep()()
	s := server.New(c)
	if err := open(ctx, s); err != nil {
		if ctx.Err() != nil {
			c.Log.Info("stopped before plinth was ready", "err", oneLine(err))
			return nil
		}
		return err
	}
	ready(s)
	notify(c.Log, readyState(s.URL()))
	<-ctx.Done()
	c.Log.Info("stopping", "reason", context.Cause(ctx))
	notify(c.Log, stoppingState)
	silence()
	return s.Close()
}

// limitMemory keeps the process within given bytes, or GOMEMLIMIT, or the memory limit of its container, and
// returns which it is; 0 if there is none.
func limitMemory(given int64, log *slog.Logger) int64 {
	if given > 0 {
		memory.LimitTo(given)
		return given
	}
	limit, err := memory.Limit()
	switch {
	case err != nil:
		log.Warn("cannot read the container's memory limit; set GOMEMLIMIT to nine tenths of it, or to off", "err", err)
	case limit > 0:
		log.Info("memory is limited to 90% of what the container may use; GOMEMLIMIT sets another limit", "limitMiB", limit>>20)
	}
	if limit = memory.InForce(); limit == 0 {
		return 0
	}
	return max(limit, server.LeastMemory)
}

// shellQuote quotes a path if a shell would change it otherwise.
func shellQuote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
