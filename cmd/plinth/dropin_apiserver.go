package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"

	"github.com/plinth-io/plinth/cmd/plinth/dropin"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
)

const apiServerHelp = `plinth in the place of kube-apiserver, beside an etcd that is plinth too (plinth test-assets).

Other flags of kube-apiserver have no effect. No controllers run.`

// apiServerOptions are the flags of kube-apiserver that the drop-in obeys.
type apiServerOptions struct {
	*serveOptions
	table            *flagTable
	bindAddress      net.IP
	securePort       int
	certDir          string
	etcdServers      []string
	etcdPrefix       string
	admissionControl []string
	gates            []string // of which serve has one list
	version          string
	ignored          []string // flags that were given and have no effect
}

// newAPIServer is the program that test-assets calls kube-apiserver.
func newAPIServer() *cobra.Command {
	return newAPIServerFor(&apiServerOptions{serveOptions: newServeOptions()})
}

func newAPIServerFor(o *apiServerOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:           apiServerName,
		Long:          apiServerHelp,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.version != "" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "Kubernetes", server.KubernetesVersion)
				return err
			}
			return o.table.nameFlags(&o.config, o.run(cmd))
		},
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	o.addFlags(cmd)
	foldFlags(cmd)
	return cmd
}

// addFlags adds kube-apiserver's flags.
func (o *apiServerOptions) addFlags(cmd *cobra.Command) {
	serve := o.serveOptions.flags()
	register(pflag.NewFlagSet("", pflag.ContinueOnError), serve) // for the defaults of those that kube-apiserver lacks
	o.table = addFlags(cmd, o.flags(serve)...)
	for _, ignored := range ignoredFlags(apiServerIgnored, &o.ignored) {
		flag := cmd.Flags().VarPF(ignored, ignored.name, "", "")
		flag.Hidden = true
		if ignored.bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// run serves until ctx ends.
func (o *apiServerOptions) run(cmd *cobra.Command) error {
	if err := o.setGates(); err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	o.config.Flags = shownFlags(cmd)
	o.begin(cmd.ErrOrStderr())
	warnOfIgnored(o.config.Log, o.ignored)
	if err := o.findCertificate(); err != nil {
		return err
	}
	if err := o.findDatabase(cmd.Context()); err != nil {
		if cmd.Context().Err() != nil {
			o.config.Log.Info("stopped before etcd answered", "err", oneLine(err))
			return nil
		}
		return err
	}
	return runServer(cmd.Context(), o.config, o.logging.Verbosity, func(*server.Server) {})
}

// setGates switches features. A feature may have the name of a component before it, of which
// there is one.
func (o *apiServerOptions) setGates() error {
	var plain []string
	for _, list := range o.gates {
		for _, gate := range strings.Split(list, ",") {
			component, name, found := strings.Cut(gate, ":")
			if !found {
				name = component
			} else if component != "kube" {
				return usagef("--feature-gates: component %q is not known; write kube:NAME=true or NAME=true", component)
			}
			plain = append(plain, name)
		}
	}
	if err := o.release.emulate(); err != nil {
		return err
	}
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil { // as kube-apiserver does
		return err
	}
	return setFeatureGates(strings.Join(plain, ","))
}

// complete makes the server's configuration out of the flags.
func (o *apiServerOptions) complete() error {
	c := &o.config
	if err := o.table.check(); err != nil {
		return err
	}
	c.DataDir = "" // kube-apiserver writes nothing but --cert-dir
	c.Listen = net.JoinHostPort(o.bindAddress.String(), strconv.Itoa(o.securePort))
	if c.History == 0 {
		c.History = -1
	}
	if c.EventTTL == 0 {
		c.EventTTL = -1
	}
	c.Controllers = []string{}
	if a := c.Authorization; len(a.Modes) == 0 && a.AuthorizationConfigurationFile == "" {
		a.Modes = []string{modes.ModeAlwaysAllow}
	}
	c.Linger = 50 * time.Millisecond // a test waits for the end
	c.ShutdownTimeout = c.ShutdownDelay + 15*time.Second
	if err := o.completeLimits(); err != nil {
		return err
	}
	return o.completeAdmission()
}

// completeLimits translates 0, which is no limit without priority and fairness. With it, only the
// sum of both counts.
func (o *apiServerOptions) completeLimits() error {
	c := &o.config
	reads, writes := c.MaxReads, c.MaxWrites
	switch {
	case reads != 0 && writes != 0 || reads < 0 || writes < 0:
	case c.NoFairness:
		unlimited := func(n int) int {
			if n == 0 {
				return math.MaxInt32
			}
			return n
		}
		c.MaxReads, c.MaxWrites = unlimited(reads), unlimited(writes)
	case reads+writes < 2:
		return usagef("--max-requests-inflight and --max-mutating-requests-inflight: write a number above 0 for one of them, or --enable-priority-and-fairness=false")
	default:
		c.MaxReads, c.MaxWrites = reads+writes-1, 1
	}
	return nil
}

// completeAdmission chooses the plugins that kube-apiserver would run.
func (o *apiServerOptions) completeAdmission() error {
	c := &o.config
	if o.table.given(&o.admissionControl) {
		if o.table.given(&c.EnableAdmissionPlugins) || o.table.given(&c.DisableAdmissionPlugins) {
			return usagef("--admission-control stands alone; leave it out, or --enable-admission-plugins and --disable-admission-plugins")
		}
		c.EnableAdmissionPlugins = o.admissionControl
		c.DisableAdmissionPlugins = slices.DeleteFunc(admission.Names(), func(name string) bool { return slices.Contains(o.admissionControl, name) })
	}
	if !slices.Contains(c.EnableAdmissionPlugins, noderestriction.PluginName) { // serve runs it by default
		c.DisableAdmissionPlugins = append(c.DisableAdmissionPlugins, noderestriction.PluginName)
	}
	return nil
}

// findDatabase asks etcd for the database.
func (o *apiServerOptions) findDatabase(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.config.DatabaseTimeout)
	defer cancel()
	o.config.DSN, err = dropin.Ask(ctx, o.etcdServers, o.etcdPrefix)
	if errors.Is(err, dropin.ErrOther) {
		return usagef("--etcd-servers %v; start the etcd that plinth test-assets has put beside this kube-apiserver", err)
	}
	if err != nil {
		return fmt.Errorf("--etcd-servers: %w", err)
	}
	return nil
}
