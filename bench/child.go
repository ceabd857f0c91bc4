package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/pki"
)

// order is what the measuring process tells a child to do. It goes through the child's
// standard input, one JSON value after the other, and each gets an answer.
type order struct {
	Do string `json:"do"`

	DSN    string `json:"dsn,omitempty"`    // of plinth
	Dir    string `json:"dir,omitempty"`    // of plinth's data
	Bare   bool   `json:"bare,omitempty"`   // plinth keeps no managedFields
	Guards guards `json:"guards,omitempty"` // of plinth
	User   string `json:"user,omitempty"`   // to certify
	Body   []byte `json:"body,omitempty"`   // that the handlers answer with from now on
}

// Values of order.Do.
const (
	doPlinth  = "serve plinth"
	doEcho    = "serve handlers that do nothing"
	doAnswer  = "answer with this body"
	doCertify = "make a user's certificate"
	doUsage   = "say what was used"
)

// answer is a child's reply.
type answer struct {
	Error string `json:"error,omitempty"`

	URL           string        `json:"url,omitempty"`
	CA, Cert, Key []byte        `json:",omitempty"`
	CPU           time.Duration `json:"cpu,omitempty"` // used since the process began
	RSS           int64         `json:"rss,omitempty"` // resident now, bytes
	Own           int64         `json:"own,omitempty"` // of them without the program's file
}

// child is the process that serves during a measurement.
type child struct {
	plinth *server.Server
	dir    string // of plinth's data
	echo   *echoServer
}

// Child is the program of the command in Options: a server that the measuring process drives.
// It ends when in ends, which is when the measuring process has closed the pipe or has ended.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &child{}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, c.close())
		}
		a, err := c.do(ctx, &o)
		if err != nil {
			a.Error = fmt.Sprintf("%s: %v", o.Do, err)
		}
		if err := answers.Encode(a); err != nil {
			return errors.Join(err, c.close())
		}
	}
}

func (c *child) do(ctx context.Context, o *order) (a answer, err error) {
	switch o.Do {
	case doPlinth:
		return c.servePlinth(ctx, o)
	case doEcho:
		if c.echo, err = startEcho(); err == nil {
			return reached(c.echo.pki.RESTConfig(c.echo.url)), nil
		}
	case doAnswer:
		c.echo.body.Store(&o.Body)
	case doCertify:
		a.Cert, a.Key, err = certify(c.dir, o.User)
	case doUsage:
		a.CPU, a.RSS, a.Own, err = usage()
	default:
		err = errors.New("no such order")
	}
	return a, err
}

func (c *child) servePlinth(ctx context.Context, o *order) (answer, error) {
	config := server.Config{
		DSN: o.DSN, DataDir: o.Dir, Listen: "127.0.0.1:0", Untracked: o.Bare,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if err := o.Guards.apply(&config); err != nil {
		return answer{}, err
	}
	s := server.New(config)
	if err := s.Open(ctx); err != nil {
		return answer{}, err
	}
	c.plinth, c.dir = s, o.Dir
	return reached(s.RESTConfig()), nil
}

// apply sets what stands between a request and its verb.
func (g guards) apply(c *server.Config) error {
	switch g {
	case guarded:
		policy := filepath.Join(c.DataDir, "audit-policy.yaml")
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return err
		}
		c.Audit = audit.NewOptions()
		c.Audit.PolicyFile, c.Audit.LogOptions.Path = policy, filepath.Join(c.DataDir, "audit.log")
		return os.WriteFile(policy, []byte(auditPolicy), 0o600)
	case open:
		c.NoFairness, c.Authorization = true, authz.NewOptions()
		c.Authorization.Modes = []string{"AlwaysAllow"}
	}
	return nil
}

// certify makes the certificate of a user of the plinth whose data are in dir.
func certify(dir, user string) (cert, key []byte, err error) {
	authority, err := pki.Open(filepath.Join(dir, "pki"), nil)
	if err != nil {
		return nil, nil, err
	}
	return authority.Client(user, nil, time.Hour)
}

func reached(c *clientrest.Config) answer {
	return answer{URL: c.Host, CA: c.CAData, Cert: c.CertData, Key: c.KeyData}
}

func (c *child) close() error {
	var errs []error
	if c.plinth != nil {
		errs = append(errs, c.plinth.Close())
	}
	if c.echo != nil {
		errs = append(errs, c.echo.close())
	}
	return errors.Join(errs...)
}
