// Package servertest runs a plinth inside a test, or inside any other program:
//
//	srv := servertest.Start(t)
//	client := kubernetes.NewForConfigOrDie(srv.Config)
//
// The server keeps everything in memory and has the process, not the machine, to itself:
// any number run side by side, in parallel tests too. It is ready when Start returns and
// gone, goroutines included, when the test ends.
//
// What the server has to say goes to Options.Log alone. Upstream's libraries in it log by klog
// as those in the test do, to standard error, such as a line for each Service. In TestMain,
//
//	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
//
// of the package server/logging leaves errors only.
package servertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of a Server. The zero value is what most tests want.
type Options struct {
	// DSN of the database; empty: SQLite in memory. With sqlite://FILE, a path in
	// t.TempDir(), a test can stop a server and start another on the same data.
	DSN string
	// DataDir gets the certificates and a kubeconfig; empty: none are written.
	DataDir string
	// Controllers to run inside, as in server.Config. The zero value runs none, as
	// envtest does: a test sees only what it and its operator do. []string{"*"} runs
	// all, for tests that need namespaces to end or dependents to follow their owners.
	Controllers []string
	// EnableAdmissionPlugins and DisableAdmissionPlugins are server.Config's. Where the
	// controller serviceaccount does not run, nobody makes the default ServiceAccount that
	// pods need, so there the zero value of DisableAdmissionPlugins leaves out ServiceAccount,
	// as envtest does; []string{} leaves out nothing.
	EnableAdmissionPlugins, DisableAdmissionPlugins []string
	// AdmissionConfigFile is server.Config's.
	AdmissionConfigFile string
	// Log gets what an operator should know, such as Log(t); nil: nothing.
	Log *slog.Logger
}

// Server is a running plinth.
type Server struct {
	// Config is the admin's client configuration. Copy it before changing it.
	Config *clientrest.Config
	// Kubeconfig is the same for programs that want a file, such as kubectl.
	Kubeconfig []byte

	server *server.Server
}

// TB is what Start needs of a *testing.T, so that programs which call Run do not link
// the testing package.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Log writes to the log of a test: servertest.Options{Log: servertest.Log(t)}. It needs of a
// *testing.T, which is shown if the test fails or -v is given, its Output.
func Log(t interface{ Output() io.Writer }) *slog.Logger {
	return logging.New(t.Output(), logging.Options{})
}

// Start runs a server until the test ends. At most one Options may be given.
func Start(t TB, options ...Options) *Server {
	t.Helper()
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatalf("start plinth: %v", err)
		return nil
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop plinth: %v", err)
		}
	})
	return s
}

const (
	// stopTimeout is generous: a busy machine must not fail a test that is over.
	stopTimeout = time.Minute
	// linger is short: there is no other server that clients could go to.
	linger = 10 * time.Millisecond
)

// Run starts a server; ctx bounds the start only. Close ends it.
func Run(ctx context.Context, o Options) (*Server, error) {
	if o.Controllers == nil {
		o.Controllers = []string{}
	}
	if !controllers.Runs(o.Controllers, "serviceaccount") && o.DisableAdmissionPlugins == nil && !slices.Contains(o.EnableAdmissionPlugins, "ServiceAccount") {
		o.DisableAdmissionPlugins = []string{"ServiceAccount"}
	}
	s := server.New(server.Config{
		DSN:             o.DSN,
		DataDir:         o.DataDir,
		Controllers:     o.Controllers,
		Log:             o.Log,
		ShutdownTimeout: stopTimeout,
		Linger:          linger,

		EnableAdmissionPlugins:  o.EnableAdmissionPlugins,
		DisableAdmissionPlugins: o.DisableAdmissionPlugins,
		AdmissionConfigFile:     o.AdmissionConfigFile,
	})
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	kubeconfig, err := s.Kubeconfig()
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("make kubeconfig: %w", err)
	}
	return &Server{Config: s.RESTConfig(), Kubeconfig: kubeconfig, server: s}, nil
}

// URL returns where the server listens: https://127.0.0.1:PORT.
func (s *Server) URL() string { return s.server.URL() }

// Close stops the server: watches end, other requests finish. Calls after the first
// return the same.
func (s *Server) Close() error { return s.server.Close() }

// Snapshot is the state of all objects at one moment.
type Snapshot struct{ pin *sqlstore.Pin }

// Snapshot remembers the state of all objects, for Rewind. It is forgotten when the server ends.
func (s *Server) Snapshot() (*Snapshot, error) {
	pin, err := s.server.Pin(context.Background())
	if err != nil {
		return nil, err
	}
	return &Snapshot{pin}, nil
}

// Rewind gives all objects the state of a snapshot again, with their uids and new resourceVersions, so
// that the next test finds what the first one found. It takes some milliseconds, and asks neither
// finalizers nor admission. Watches see what changes. Call it when nobody else writes; controllers that
// go on may change objects again. The resources of CustomResourceDefinitions follow a moment later.
func (s *Server) Rewind(snapshot *Snapshot) error {
	return s.server.Rewind(context.Background(), snapshot.pin)
}
