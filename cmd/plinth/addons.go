package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/nearest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/components"
)

// addonFiles are the manifests, as templates of addonValues.
//
//go:embed addons/*.yaml
var addonFiles embed.FS

// addonNames are the names of the files, in the order in which they are printed.
var addonNames = []string{"kube-proxy", "coredns"}

// coreDNSRelease is the release of CoreDNS that this release of Kubernetes is tested with; TestAddonsRelease compares it.
const coreDNSRelease = "v1.14.6"

const addonsHelp = `Print the manifests of kube-proxy and CoreDNS, or of one of them, for kubectl apply.

kube-proxy leads traffic to Services on each node, and CoreDNS answers for their names. The manifests
fit the server that the kubeconfig names, by its URL and its range of Services, and have the images of
this release of Kubernetes. Addresses of pods are those of each node (podCIDR) unless --cluster-cidr
names all of them; nodes have them with plinth serve --cluster-cidr.`

// addonsQuery is the command's flags.
type addonsQuery struct {
	clientFlags
	server, domain string
	clusterCIDR    []string
	dns            net.IP
}

// addonValues are what the manifests differ by.
type addonValues struct {
	Server, ClusterCIDR       string
	ClusterDNS, ClusterDomain string
	Release, CoreDNS          string // the versions of the images
}

func newAddons() *cobra.Command {
	var q addonsQuery
	var flags *flagTable
	cmd := &cobra.Command{
		Use:   "addons [kube-proxy] [coredns]",
		Short: "Print manifests of kube-proxy and CoreDNS",
		Long:  addonsHelp,
		Example: `  plinth addons --server https://plinth.example.com:6443 | kubectl apply -f -
  plinth addons coredns --cluster-dns 10.96.0.10`,
		ValidArgsFunction: values(addonNames...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(flags.check(), q.check(args)); err != nil {
				return err
			}
			return q.run(cmd, args)
		},
	}
	flags = addInOrder(cmd, append([]Flag{
		serverFlag(&q.server, nodeServerHelp),
		clusterCIDRFlag(&q.clusterCIDR, q.checkRanges, "`CIDR` of the addresses of pods, as for serve; by default each node's own range"),
		clusterDNSFlag(&q.dns),
		clusterDomainFlag(&q.domain),
	}, q.clientFlags.flags()...)...)
	return cmd
}

func (q *addonsQuery) check(args []string) error {
	for _, name := range args {
		if !slices.Contains(addonNames, name) {
			return usagef("there is no addon %q: write %s", name, cmp.Or(nearest.Of(name, addonNames), strings.Join(addonNames, " or ")))
		}
	}
	return checkDomain(q.domain)
}

// checkRanges says what is wrong with --cluster-cidr.
func (q *addonsQuery) checkRanges() string {
	if err := components.CheckRanges(q.clusterCIDR, nil, components.Masks{}); err != nil {
		return ": " + err.Error()
	}
	return ""
}

func (q *addonsQuery) run(cmd *cobra.Command, args []string) error {
	names := slices.DeleteFunc(slices.Clone(addonNames), func(name string) bool { return len(args) > 0 && !slices.Contains(args, name) })
	given, err := q.values(cmd, names)
	if err != nil {
		return err
	}
	manifests, err := template.ParseFS(addonFiles, "addons/*.yaml")
	if err != nil {
		return err
	}
	for i, name := range names {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "---")
		}
		if err := manifests.ExecuteTemplate(cmd.OutOrStdout(), name+".yaml", given); err != nil {
			return fmt.Errorf("print the manifests of %s: %w", name, err)
		}
	}
	return nil
}

// values asks the server for what the flags do not say and the manifests need. Each addon needs one value.
func (q *addonsQuery) values(cmd *cobra.Command, names []string) (*addonValues, error) {
	v := &addonValues{ClusterCIDR: strings.Join(q.clusterCIDR, ","), ClusterDomain: q.domain, Release: server.BuildInfo().Kubernetes, CoreDNS: coreDNSRelease}
	var config *clientrest.Config
	needsURL, needsDNS := slices.Contains(names, "kube-proxy"), slices.Contains(names, "coredns")
	if needsURL && q.server == "" || needsDNS && q.dns == nil {
		var err error
		if config, err = q.config(cmd, q.loader(cmd, "")); err != nil {
			return nil, err
		}
	}
	if needsURL {
		u, err := nodeServer(q.server, config)
		if err != nil {
			return nil, err
		}
		v.Server = strings.TrimSuffix(u.String(), "/")
	}
	if needsDNS {
		dns, err := q.findDNS(cmd.Context(), config)
		if err != nil {
			return nil, askedBy(config).explain(err)
		}
		v.ClusterDNS = dns.String()
	}
	return v, q.checkOverlap(v.ClusterDNS)
}

func (q *addonsQuery) findDNS(ctx context.Context, config *clientrest.Config) (net.IP, error) {
	if q.dns != nil {
		return q.dns, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	return clusterDNS(ctx, client)
}

// checkOverlap refuses addresses of pods among which that of a Service is.
func (q *addonsQuery) checkOverlap(dns string) error {
	address, err := netip.ParseAddr(dns)
	if err != nil {
		return nil // it is not needed
	}
	for _, text := range q.clusterCIDR {
		if r, err := netip.ParsePrefix(text); err == nil && r.Contains(address) {
			return usagef("--cluster-cidr: %q overlaps with the addresses of Services, such as %s of the cluster's DNS", text, dns)
		}
	}
	return nil
}
