package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/ui"
)

const uiHelp = `Show the cluster that the kubeconfig points at in a browser: its objects, each with its past.

The page is served on this machine only. The address that is printed lets one browser in, once; it then has a
cookie. Every request goes to the API with the credentials of the kubeconfig. Against a kube-apiserver the
page shows objects, and says so where it needs the history of a plinth.`

// uiQuery is the command's flags.
type uiQuery struct {
	clientFlags
	listen string
	open   bool
}

func newUI() *cobra.Command {
	var q uiQuery
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show a cluster and its past in a browser",
		Long:  uiHelp,
		Args:  noArgs,
		Example: `  plinth ui --open
  plinth ui --context prod`,
		RunE: func(cmd *cobra.Command, _ []string) error { return q.run(cmd) },
	}
	addInOrder(cmd, append([]Flag{
		listenFlag(&q.listen, "127.0.0.1:0", "`host:port` of the loopback interface to serve on; port 0 takes a free port"),
		{Name: "open", Set: boolean(&q.open, false), Help: "open the page in the browser of this machine"},
	}, q.clientFlags.flags()...)...)
	return cmd
}

// run serves the page until the command's context ends.
func (q *uiQuery) run(cmd *cobra.Command) error {
	config, err := q.config(cmd, q.loader(cmd, ""))
	if err != nil {
		return err
	}
	listener, err := q.listener()
	if err != nil {
		return err
	}
	defer listener.Close()
	door := ui.NewLocal(config, listener.Addr().String())
	fmt.Fprintf(cmd.OutOrStdout(), "%s   # %s, for one browser; Ctrl-C ends it\n", door.URL(), config.Host)
	if err := askedBy(config).explain(ui.Check(cmd.Context(), config)); err != nil {
		tell(cmd, "warning: %s; the page says so until it is there", oneLine(err))
	}
	if q.open {
		remove, err := openBrowser(door.URL())
		defer remove()
		if err != nil {
			tell(cmd, "cannot start a browser: %v", err)
		}
	}
	return serveUI(cmd.Context(), listener, ui.New(ui.Options{Base: door.Base(), Door: door}))
}

// listener listens on the loopback interface, and nowhere else.
func (q *uiQuery) listener() (net.Listener, error) {
	host, _, err := net.SplitHostPort(q.listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef("--listen: %q: the page is for this machine only: write an address such as 127.0.0.1:8080; plinth serve --ui serves it to others", q.listen)
	}
	listener, err := net.Listen("tcp", q.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

// serveUI serves a page until ctx ends.
func serveUI(ctx context.Context, listener net.Listener, page http.Handler) error {
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that live pages end
	}
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if server.Shutdown(late) != nil {
			server.Close()
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// openBrowser starts the browser that this machine has, on a file that only this user can read and that leads to the
// address: the arguments of a program can be read by every user of the machine.
func openBrowser(address string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "plinth-ui-")
	if err != nil {
		return func() {}, err
	}
	remove = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	if err := os.WriteFile(file, []byte(`<!doctype html><meta http-equiv="refresh" content="0; url=`+html.EscapeString(address)+`">`), 0o600); err != nil {
		return remove, err
	}
	return remove, startBrowser(file)
}

func startBrowser(file string) error {
	program := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if program == nil {
		program = []string{"xdg-open"}
	}
	cmd := exec.Command(program[0], append(program[1:], file)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
