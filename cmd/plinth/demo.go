package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/plinth-io/plinth/cmd/plinth/ui"
	"github.com/plinth-io/plinth/server"
)

const demoHelp = `Run a whole control plane with simulated nodes in this process, to try and to show it, until Ctrl-C.

The database and the certificates are in a temporary directory, which is removed at the end, unless
--data-dir names one that stays. No container runs: pods on simulated nodes become ready at once, and pods of
Jobs then succeed.`

// demoOptions are what the flags of demo set.
type demoOptions struct {
	serve *serveOptions
}

func newDemo() *cobra.Command {
	o := &demoOptions{serve: newServeOptions()}
	var flags *flagTable
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Run a control plane with simulated nodes, for now",
		Long:    demoHelp,
		Args:    noArgs,
		Example: `  plinth demo`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.nameFlags(&o.serve.config, o.run(cmd, flags))
		},
	}
	flags = addInOrder(cmd, o.flags()...)
	withVariables(cmd)
	return cmd
}

func (o *demoOptions) flags() []Flag {
	c := &o.serve.config
	dir := dataDirFlag(&c.DataDir, "`directory` of the database, the certificates and the kubeconfig, which stays; by default a temporary one")
	dir.Set = text(&c.DataDir, "")
	return []Flag{
		simulateNodesFlag(&o.serve.components.nodes, 3, "`number` of simulated nodes"),
		listenFlag(&c.Listen, "127.0.0.1:0", "`host:port` to serve on; port 0 takes a free port"),
		dir,
		verbosityFlag(&o.serve.logging.Verbosity, "the libraries of Kubernetes log"),
	}
}

// run runs the demo until the command's context ends.
func (o *demoOptions) run(cmd *cobra.Command, flags *flagTable) error {
	if err := flags.check(); err != nil {
		return err
	}
	if o.serve.config.DataDir == "" {
		dir, err := os.MkdirTemp("", "plinth-demo-")
		if err != nil {
			return fmt.Errorf("make a temporary directory: %w", err)
		}
		defer os.RemoveAll(dir)
		o.serve.config.DataDir = dir
	}
	c, out := &o.serve.config, cmd.OutOrStdout()
	o.serve.components.on, o.serve.privileged, c.LeaseCommitDelay = true, true, clusterCommitDelay
	err := o.serve.keep.apply(c)
	if err != nil {
		return err
	}
	if c.Components, err = o.serve.components.make(flags, c); err != nil {
		return err
	}
	c.Page = uiPage(c.Authentication)
	o.serve.begin(cmd.ErrOrStderr())
	if o.serve.logging.Verbosity == 0 {
		o.serve.logging.Dial.OnlyWarnings()
	}
	begun := time.Now()
	fmt.Fprintf(out, "Starting a control plane and %d simulated nodes.\n", o.serve.components.nodes)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	err = runServer(ctx, *c, o.serve.logging.Verbosity, func(s *server.Server) {
		go func() {
			if err := o.introduce(ctx, out, s, begun); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("wait for the nodes: %w", err)
				cancel()
			}
		}()
	})
	select {
	case cause := <-failed:
		return cause
	default:
		return err
	}
}

// introduce waits until pods can run on all nodes, and says what to do then.
func (o *demoOptions) introduce(ctx context.Context, out io.Writer, s *server.Server, begun time.Time) error {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return err
	}
	if err := awaitNodes(ctx, client, o.serve.components.nodes); err != nil {
		return err
	}
	page, err := showLocally(ctx, s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `They are ready after %v. Open this address in one browser:

    %s

Paste this line into another terminal:

%s
and then try:

    kubectl create deployment web --image=nginx --replicas=5
    kubectl get pods -o wide --watch

Ctrl-C here ends all of it.
`, time.Since(begun).Round(100*time.Millisecond), page, exportLine(s))
	return err
}

// showLocally serves the page of plinth ui until ctx ends, and returns the address that lets a browser in.
func showLocally(ctx context.Context, s *server.Server) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	door := ui.NewLocal(s.RESTConfig(), listener.Addr().String())
	go func() { _ = serveUI(ctx, listener, ui.New(ui.Options{Base: door.Base(), Door: door})) }()
	return door.URL(), nil
}

// awaitNodes waits until pods can run on a number of nodes.
func awaitNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	ready := map[string]bool{}
	nodes := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll, fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, nodes, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		if node, ok := e.Object.(*corev1.Node); ok && takesPods(node) {
			ready[node.Name] = true
		}
		return len(ready) >= n, nil
	})
	return err
}

// takesPods tells whether a node is ready and the controller manager has removed its taints.
func takesPods(node *corev1.Node) bool {
	return len(node.Spec.Taints) == 0 && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
