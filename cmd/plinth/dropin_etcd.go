package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/dropin"
	"github.com/plinth-io/plinth/server/logging"
)

// etcdDropInVersion is the release of etcd whose flags and pages the drop-in has.
const etcdDropInVersion = "3.6.16"

const etcdDropInHelp = `plinth in the place of etcd, for a kube-apiserver that is plinth too (plinth test-assets).

It keeps a SQLite database for each such kube-apiserver in its data directory, and answers
/health and /version. It does not speak etcd's own protocol: another kube-apiserver, or
etcdctl, cannot use it. Flags of etcd that are not among these have no effect.

Flags:
`

// etcdDropIn are the flags of etcd that the drop-in obeys.
type etcdDropIn struct {
	name, dataDir, clientURLs string
	unsafe, version           bool
	ignored                   []string // flags that were given and have no effect
}

// flags returns etcd's flags. They are those of Go's package: -name and --name are the same.
func (o *etcdDropIn) flags() *flag.FlagSet {
	f := flag.NewFlagSet(etcdName, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.name, "name", "default", "name of the member, which the data directory is called after")
	f.StringVar(&o.dataDir, "data-dir", "", "directory of the databases; by default NAME.etcd")
	f.StringVar(&o.clientURLs, "listen-client-urls", "http://localhost:2379", "http:// URLs to answer on, separated by commas")
	f.BoolVar(&o.unsafe, "unsafe-no-fsync", false, "do not wait for the disk: faster, and a crash of the machine may lose data")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	for _, ignored := range ignoredFlags(etcdIgnored, &o.ignored) {
		f.Var(ignored, ignored.name, "")
	}
	return f
}

// newEtcdDropIn is the program that test-assets calls etcd.
func newEtcdDropIn() *cobra.Command {
	return &cobra.Command{
		Use:                etcdName,
		DisableFlagParsing: true, // cobra's flags have no names after one dash
		SilenceErrors:      true,
		SilenceUsage:       true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var o etcdDropIn
			f := o.flags()
			switch err := f.Parse(args); {
			case errors.Is(err, flag.ErrHelp):
				return printEtcdDropInHelp(cmd.OutOrStdout(), f)
			case err != nil:
				return usagef("%v; see etcd --help", err)
			case f.NArg() > 0:
				return usagef("unexpected %q; see etcd --help", f.Arg(0))
			case o.version:
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "etcd Version: %s\nplinth in its place; see etcd --help\n", etcdDropInVersion)
				return err
			}
			return o.serve(cmd.Context(), logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text}))
		},
	}
}

// printEtcdDropInHelp lists the flags that have an effect. Programs look here for --unsafe-no-fsync.
func printEtcdDropInHelp(w io.Writer, f *flag.FlagSet) error {
	text := etcdDropInHelp
	f.VisitAll(func(f *flag.Flag) {
		if _, ignored := f.Value.(*ignoredFlag); !ignored {
			text += fmt.Sprintf("  --%s\t%s\n", f.Name, f.Usage)
		}
	})
	_, err := io.WriteString(w, text)
	return err
}

// serve answers until ctx ends.
func (o *etcdDropIn) serve(ctx context.Context, log *slog.Logger) error {
	dir, err := o.directory()
	if err != nil {
		return err
	}
	warnOfIgnored(log, o.ignored)
	s := &http.Server{Handler: o.pages(dir), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true) // of gRPC
	urls := strings.Split(o.clientURLs, ",")
	ended := make(chan error, len(urls))
	defer s.Close()
	for _, u := range urls {
		l, err := listenAt(strings.TrimSpace(u))
		if err != nil {
			return err
		}
		go func() { ended <- s.Serve(l) }()
	}
	log.Info("ready", "urls", o.clientURLs, "dataDir", dir)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		log.Info("stopped")
		return nil
	}
}

// pages answers what etcd answers without its own protocol, and the kube-apiserver's question.
func (o *etcdDropIn) pages(dir string) http.Handler {
	mux := http.NewServeMux()
	dropin.Databases{Directory: dir, Unsafe: o.unsafe}.Add(mux)
	for path, text := range map[string]string{
		"/health":  `{"health":"true","reason":""}`,
		"/version": `{"etcdserver":"` + etcdDropInVersion + `","etcdcluster":"3.6.0"}`,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text) // the client is gone
		})
	}
	mux.HandleFunc("/", refuseGRPC)
	return mux
}

// refuseGRPC tells clients of etcd's own protocol what they have reached, in that protocol.
func refuseGRPC(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		http.NotFound(w, r)
		return
	}
	const unimplemented = "12" // a code of gRPC
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", unimplemented)
	w.Header().Set("Grpc-Message", "this is plinth in the place of etcd, for a kube-apiserver that is plinth too")
}

// directory returns the data directory, which it makes if it is missing.
func (o *etcdDropIn) directory() (string, error) {
	if o.dataDir == "" {
		o.dataDir = o.name + ".etcd"
	}
	dir, err := filepath.Abs(o.dataDir)
	if err != nil {
		return "", err
	}
	if strings.Contains(dir, "?") {
		return "", usagef("--data-dir %s: write a path without a question mark", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err == nil {
		return "", usagef("--data-dir %s: it has the data of another etcd, which plinth cannot read; write another directory", dir)
	}
	return dir, os.MkdirAll(dir, 0o700)
}

func listenAt(asked string) (net.Listener, error) {
	u, err := url.Parse(asked)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return nil, usagef("--listen-client-urls %q: write http://HOST:PORT", asked)
	}
	return net.Listen("tcp", u.Host)
}
