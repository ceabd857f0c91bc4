// Plinth-demo runs a whole control plane on one machine, to try and to show it: plinth, the
// real kube-controller-manager and kube-scheduler, and nodes simulated by kwok. `make demo`
// builds all of them and starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	d := demo{out: os.Stdout}
	flag.StringVar(&d.dir, "dir", "plinth-demo", "`directory` of data and logs; the next run goes on with what is there")
	flag.StringVar(&d.bin, "bin", "plinth-demo/bin", "`directory` of kube-controller-manager, kube-scheduler, kwok and its stage-fast.yaml")
	flag.StringVar(&d.plinth, "plinth", "./plinth", "the `program` plinth")
	flag.StringVar(&d.listen, "listen", "127.0.0.1:0", "`host:port` that plinth listens on; port 0 takes a free one")
	flag.IntVar(&d.nodes, "nodes", 3, "`number` of simulated nodes")
	flag.Parse()

	// The second signal ends the demo at once; see startProcess for what becomes of the rest.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "plinth-demo:", err)
		os.Exit(1)
	}
}

// demo holds the flags.
type demo struct {
	dir, bin, plinth, listen string
	nodes                    int
	out                      io.Writer
}

// run starts all programs, and returns when ctx or one of the programs has ended. All programs have
// ended then.
func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return err
	}
	g, err := newGroup(filepath.Join(d.dir, "log"), d.dir)
	if err != nil {
		return err
	}
	// A program that ends by itself ends the demo.
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.onDeath = func(err error) { cancel(err) }
	defer func() {
		if ctx.Err() != nil {
			fmt.Fprintln(d.out, "\nending the demo")
		}
		g.stop()
	}()
	err = d.start(starting, g)
	if err == nil {
		<-starting.Done()
	}
	if cause := context.Cause(starting); cause != nil && ctx.Err() == nil {
		return cause // the end of the program, which explains err
	} else if ctx.Err() != nil {
		return nil
	}
	return err
}

// start returns when the nodes are ready and the instructions are printed.
func (d *demo) start(ctx context.Context, g *group) error {
	fmt.Fprintf(d.out, "starting plinth, kube-controller-manager, kube-scheduler and kwok; their logs are in %s\n", g.logs)
	data := filepath.Join(d.dir, "data")
	paste, err := d.startPlinth(ctx, g, data)
	if err != nil {
		return err
	}
	client, err := adminOf(filepath.Join(data, "kubeconfig"))
	if err != nil {
		return err
	}
	if err := allowKwok(ctx, client); err != nil {
		return fmt.Errorf("make kwok's role: %w", err)
	}
	if err := d.startComponents(g, data); err != nil {
		return err
	}
	if err := d.addNodes(ctx, client); err != nil {
		return fmt.Errorf("add nodes: %w", err)
	}
	_, err = fmt.Fprintf(d.out, `%d simulated nodes are ready. Paste this line into another terminal:

%s

and then try:

    kubectl create deployment web --image=nginx --replicas=5
    kubectl get pods -o wide --watch

Ctrl-C here ends all of it. The next start goes on with what is there.
`, d.nodes, paste)
	return err
}

// startPlinth returns when plinth serves, with the line that points kubectl at plinth.
func (d *demo) startPlinth(ctx context.Context, g *group, data string) (paste string, err error) {
	p, lines, err := g.startWithOutput(d.plinth, "serve", "--listen="+d.listen, "--data-dir="+data, "--dsn=sqlite://"+filepath.Join(data, "plinth.db"), "--controllers=none")
	if err != nil {
		return "", err
	}
	select {
	case line, ok := <-lines:
		if ok {
			return line, nil
		}
		<-p.ended
		return "", errors.New("plinth did not start") // onDeath says why
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// startComponents starts one process of each component, each as a user of its own, so that no leader
// needs to be elected. The processes open no ports, which might be taken.
func (d *demo) startComponents(g *group, data string) error {
	pki := filepath.Join(data, "pki")
	for _, c := range []struct {
		name, user string
		args       []string
	}{
		{"kube-controller-manager", managerUser, []string{"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
			"--service-account-private-key-file=" + filepath.Join(pki, "sa.key"), "--root-ca-file=" + filepath.Join(pki, "ca.crt"),
			"--cluster-signing-cert-file=" + filepath.Join(pki, "ca.crt"), "--cluster-signing-key-file=" + filepath.Join(pki, "ca.key")}},
		{"kube-scheduler", schedulerUser, []string{"--leader-elect=false", "--secure-port=0"}},
		{"kwok", kwokUser, []string{"--manage-all-nodes=true", "--config=" + filepath.Join(d.bin, "stage-fast.yaml")}},
	} {
		kubeconfig, err := d.kubeconfig(data, c.name, c.user)
		if err != nil {
			return err
		}
		if _, err := g.start(filepath.Join(d.bin, c.name), append(c.args, "--kubeconfig="+kubeconfig)...); err != nil {
			return err
		}
	}
	return nil
}
