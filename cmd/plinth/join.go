package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

const joinHelp = `Print one line that makes a machine a node of the cluster, when it is pasted into a shell there.

The machine needs systemd, containerd and a kubelet; nothing is downloaded. The line writes the
kubelet's configuration, its unit and a bootstrap token, and starts it. The kubelet then gets a
certificate of its own and renews it. With -o script the line can be read before it is run.

For this the command makes a token, which ends after --ttl, and, once for the cluster, the rights
that nodes need to join. Whoever has the line can join any node until the token ends: treat it as a
password. kubectl delete ends the token before; the command says its name.`

// joinQuery is the command's flags.
type joinQuery struct {
	clientFlags
	server, domain, output string
	dns                    net.IP
	ttl                    days
	force                  bool
}

func newJoinCommand() *cobra.Command {
	q := joinQuery{ttl: days(24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "join-command NODE",
		Short: "Print a line that makes a machine a node of the cluster",
		Long:  joinHelp,
		Example: `  plinth join-command node-1 --server https://plinth.example.com:6443
  plinth join-command node-1 --ttl 1h -o script`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(cmd, args); err != nil {
				return err
			}
			return q.run(cmd, args[0])
		},
	}
	addInOrder(cmd, append([]Flag{
		serverFlag(&q.server, nodeServerHelp),
		{Name: "ttl", Set: value(&q.ttl), Help: "how long the token is valid, such as 30m or 1d"},
		forceFlag(&q.force, "also if there is such a node, which then joins again"),
		clusterDNSFlag(&q.dns),
		clusterDomainFlag(&q.domain),
		outputFlag(&q.output, "`format` to print in: script, for the script that is in the line; by default the line", "script"),
	}, q.clientFlags.flags()...)...)
	return cmd
}

func (q *joinQuery) check(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("write the name of one node, such as %s node-1", cmd.CommandPath())
	}
	if faults := slices.Concat(validation.IsDNS1123Subdomain(args[0]), validation.IsValidLabelValue(args[0])); len(faults) > 0 {
		return usagef("%q cannot be the name of a node: write a DNS name of up to 63 characters in lower case, such as node-1", args[0])
	}
	if q.output != "" && q.output != "script" {
		return usagef("--output: %q: write script, or leave it out for a line", q.output)
	}
	return checkDomain(q.domain)
}

func checkDomain(domain string) error {
	if len(validation.IsDNS1123Subdomain(domain)) > 0 {
		return usagef("--cluster-domain: %q: write a DNS name such as cluster.local", domain)
	}
	return nil
}

func (q *joinQuery) run(cmd *cobra.Command, node string) error {
	config, err := q.config(cmd, q.loader(cmd, ""))
	if err != nil {
		return err
	}
	config.WarningHandler = clientrest.NoWarnings{}
	server, err := nodeServer(q.server, config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return usagef("kubeconfig: %v", err)
	}
	script, err := q.prepare(cmd.Context(), config, client, node)
	if err == nil {
		script.server = strings.TrimSuffix(server.String(), "/")
		err = q.admit(cmd, config, client, script)
	}
	if err != nil {
		return askedBy(config).explain(err)
	}
	return q.print(cmd, config, server, script)
}

// prepare reads all that the script needs. It changes nothing.
func (q *joinQuery) prepare(ctx context.Context, config *clientrest.Config, client kubernetes.Interface, node string) (*joinScript, error) {
	ca, err := authoritiesOf(config)
	if err != nil {
		return nil, err
	}
	_, err = client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	switch {
	case err == nil && !q.force:
		return nil, fmt.Errorf("there is a node %s already: kubectl delete node %[1]s if it is gone, or write --force to have it join again", node)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	release, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	dns := q.dns
	if dns == nil {
		if dns, err = clusterDNS(ctx, client); err != nil {
			return nil, err
		}
	}
	return &joinScript{node: node, ca: string(ca), dns: dns.String(), domain: q.domain, minor: strings.TrimRight(release.Minor, "+")}, nil
}

// authoritiesOf returns the certificates by which a kubeconfig trusts its server, in PEM.
func authoritiesOf(config *clientrest.Config) ([]byte, error) {
	config = clientrest.CopyConfig(config)
	if err := clientrest.LoadTLSFiles(config); err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	if len(config.CAData) == 0 {
		return nil, usagef("the kubeconfig has no certificate-authority, which a node needs to trust the server: write a --kubeconfig that has it, such as that in plinth's data directory")
	}
	return config.CAData, nil
}

// admit gives the cluster the rights to join, and the script a token. A token that the server does not take is deleted.
func (q *joinQuery) admit(cmd *cobra.Command, config *clientrest.Config, client kubernetes.Interface, script *joinScript) error {
	made, err := addJoinRights(cmd.Context(), client)
	for _, name := range made {
		tell(cmd, "made the ClusterRoleBinding %s", name)
	}
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(q.ttl))
	token, err := addJoinToken(cmd.Context(), client, script.node, end)
	if err != nil {
		return err
	}
	if err := token.check(cmd.Context(), config, acceptedWithin); err != nil {
		gone := token.delete(context.WithoutCancel(cmd.Context()), client)
		if gone != nil {
			tell(cmd, "the Secret %s of the token stays: %v", token.secret(), gone)
		}
		if errors.Is(err, errNoTokens) {
			return fmt.Errorf("%s %w", config.Host, err)
		}
		return err
	}
	tell(cmd, "made the Secret %s in kube-system: its token joins nodes until %s", token.secret(), end.UTC().Format(time.RFC3339))
	script.token = token.text
	return nil
}

func (q *joinQuery) print(cmd *cobra.Command, config *clientrest.Config, server *url.URL, script *joinScript) error {
	if host := server.Hostname(); !showsName(cmd.Context(), config, host) {
		tell(cmd, "warning: the server's certificate is not valid for %s, so that nodes will not trust it; start plinth with --tls-san %[1]s", host)
	}
	out, text := cmd.OutOrStdout(), script.line()
	if q.output == "script" {
		text = script.text()
	} else {
		tell(cmd, "Paste this line into a shell on %s (without sudo if that is root's):", script.node)
	}
	if err := closeToOthers(out); err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	tell(cmd, "When it has joined, kubectl get csr has a request for its serving certificate, which kubectl certificate approve grants")
	return nil
}
