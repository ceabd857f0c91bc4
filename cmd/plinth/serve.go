package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admit"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/quiet"
	"github.com/plinth-io/plinth/server/tokens"
)

const serveHelp = `Serve the Kubernetes API over HTTPS until SIGTERM or SIGINT.

Every flag can be given as an environment variable, named in brackets; the flag wins.

The database is one of
  sqlite://plinth.db                   a file; one process at a time
  postgres://user:password@host/db     any number of plinths may share it
  mysql://user:password@host/db        MySQL 8 or MariaDB 10.6 and later; likewise
A password need not stand in the DSN: PLINTH_DB_PASSWORD has it, or the file that
PLINTH_DB_PASSWORD_FILE names.

The data directory has the certificates (pki/) and a kubeconfig for the admin. Both are
made on the first start and kept.`

func newServe() *cobra.Command {
	c := server.Config{Audit: audit.NewOptions()}
	var gates *string
	var privileged *bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Kubernetes API",
		Long:  serveHelp,
		Args:  noArgs,
		Example: `  plinth serve
  plinth serve --dsn postgres://plinth@db.example.com/plinth --listen 0.0.0.0:6443 --tls-san plinth.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEnv(cmd); err != nil {
				return err
			}
			if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
				return usagef("--feature-gates: %v", err)
			}
			capabilities.Setup(*privileged, 0)
			return serve(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addServeFlags(cmd, &c)
	addTokenFlags(cmd, &c.Tokens)
	c.Audit.AddFlags(cmd.Flags())
	gates = cmd.Flags().String("feature-gates", "", "upstream's alpha and beta features to switch on or off: `name=bool,...`")
	for _, name := range []string{"default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds"} {
		cmd.Flags().AddGoFlag(flag.Lookup(name)) // the plugin's
	}
	privileged = cmd.Flags().Bool("allow-privileged", true, "let containers be privileged where pod security does")
	documentEnv(cmd)
	return cmd
}

func addServeFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.DSN, "dsn", "", "`database` to keep everything in; without it plinth.db in the data directory")
	f.DurationVar(&c.DatabaseTimeout, "database-timeout", time.Minute, "how long to wait at the start for a database that cannot be reached")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:6443", "`host:port` to listen on; port 0 takes a free one, which the kubeconfig then has")
	f.StringVar(&c.DataDir, "data-dir", "plinth-data", "`directory` of certificates and kubeconfig")
	f.StringSliceVar(&c.SANs, "tls-san", nil, "more `names` and addresses to make the serving certificate for; repeat it or separate them by commas")
	f.DurationVar(&c.History, "history", 5*time.Minute, "how long old versions stay readable for watches that resume and lists in pages; negative: for ever")
	f.DurationVar(&c.EventTTL, "event-ttl", time.Hour, "how long events stay after their last change, a second at least; 0: for ever")
	f.StringSliceVar(&c.Controllers, "controllers", []string{"*"}, "controllers to run inside: * for all, `name` for one, -name for all but it; empty for none")
	c.RuntimeConfig = map[string]string{}
	f.Var((*cliflag.ConfigurationMap)(&c.RuntimeConfig), "runtime-config", "API versions to switch on or off: `key=bool,...` with GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta and api/alpha for keys")
	f.StringSliceVar(&c.ServeRemovedAPIs, "serve-removed-apis", nil, "`versions` to serve that Kubernetes has removed: extensions/v1beta1, batch/v1beta1/cronjobs, all; repeat it or separate them by commas")
	f.StringSliceVar(&c.EnableAdmissionPlugins, "enable-admission-plugins", nil, "admission `plugins` to run besides those that run by default ("+strings.Join(admit.DefaultNames(), ", ")+"); of "+strings.Join(admit.Names(), ", "))
	f.StringSliceVar(&c.DisableAdmissionPlugins, "disable-admission-plugins", nil, "admission `plugins` not to run that run by default")
	f.StringVar(&c.AdmissionConfigFile, "admission-control-config-file", "", "`file` with the configuration of admission plugins, an AdmissionConfiguration")
	f.StringVar(&c.KubeletCertificate, "kubelet-client-certificate", "", "`file` of what to show to kubelets; without it a certificate of this server's own authority")
	f.StringVar(&c.KubeletKey, "kubelet-client-key", "", "`file` of its key")
	f.StringVar(&c.KubeletCA, "kubelet-certificate-authority", "", "`file` of the authority that has signed the kubelets' certificates; without it they are not verified")
	f.StringSliceVar(&c.KubeletAddressTypes, "kubelet-preferred-address-types", server.NodeAddressTypes, "`types` of a node's addresses to look for its kubelet at, in this order")
	f.StringSliceVar(&c.ServiceClusterIPRange, "service-cluster-ip-range", []string{allocate.DefaultAddresses}, "`range` that Services get their addresses from; one of IPv4 and one of IPv6, separated by a comma, for both")
	f.StringVar(&c.ServiceNodePortRange, "service-node-port-range", allocate.DefaultNodePorts, "`first-last` of the ports that Services get on nodes")
	f.DurationVar(&c.ShutdownDelay, "shutdown-delay-duration", 0, "how long to go on after SIGTERM with /readyz failing, before connections are refused")
	f.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", 30*time.Second, "how long a stop may take, the delay included; what still runs then is cut off")
	f.DurationVar(&c.RequestTimeout, "request-timeout", time.Minute, "how long a request other than a watch may take")
	f.IntVar(&c.MaxReads, "max-requests-inflight", 400, "`number` of reads that may run at once")
	f.IntVar(&c.MaxWrites, "max-mutating-requests-inflight", 200, "`number` of writes that may run at once")
}

// addTokenFlags are kube-apiserver's of the same names.
func addTokenFlags(cmd *cobra.Command, o *tokens.Options) {
	f := cmd.Flags()
	f.StringVar(&o.SigningKeyFile, "service-account-signing-key-file", "", "`file` of the private key that tokens of service accounts are signed with; without it pki/sa.key in the data directory")
	f.StringArrayVar(&o.KeyFiles, "service-account-key-file", nil, "`file` of more keys that tokens are verified by; repeat it for several; without it those of all servers of the database")
	f.StringArrayVar(&o.Issuers, "service-account-issuer", []string{tokens.DefaultIssuer}, "`URL` that tokens say they come from; repeat it for more that are believed")
	f.StringSliceVar(&o.Audiences, "api-audiences", nil, "`names` of the API that tokens must be for; without it the issuers")
	f.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", 0, "how long a token may live, whatever is asked for; 0: any time")
	o.ExtendExpiration = f.Bool("service-account-extend-token-expiration", true, "let the tokens of pods live for a year, for clients that do not read them again")
	f.StringVar(&o.JWKSURI, "service-account-jwks-uri", "", "https `URL` of the keys, for those who ask the issuer; without it this server")
	f.StringVar(&o.TokenFile, "token-auth-file", "", "CSV `file` of static tokens: token,user,uid,\"group1,group2\"")
}

// serve runs a server until ctx ends, then stops it gracefully.
func serve(ctx context.Context, c server.Config, stdout, stderr io.Writer) error {
	if strings.TrimSpace(c.DataDir) == "" {
		return usagef("data directory is empty; write a path, such as --data-dir plinth-data")
	}
	if c.EventTTL < 0 {
		return usagef("event TTL %v is negative; write a duration such as 1h, or 0 to keep events for ever", c.EventTTL)
	} else if c.EventTTL == 0 {
		c.EventTTL = -1
	}
	silence := quiet.Libraries(stderr)
	c.Logf = log.New(stderr, "", log.LstdFlags).Printf
	s := server.New(c)
	if err := s.Open(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s   # serving %s\n", shellQuote(absolute(s.KubeconfigPath())), s.URL())
	<-ctx.Done()
	silence()
	return s.Close()
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// shellQuote quotes a path only if a shell would not take it as it stands.
func shellQuote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
