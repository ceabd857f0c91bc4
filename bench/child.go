package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/pprof"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
)

// order is what the measuring process tells a child to do. It goes through the child's
// standard input, one JSON value after the other, and each gets an answer.
type order struct {
	Do string `json:"do"`

	DSN  string `json:"dsn,omitempty"`  // of plinth
	Dir  string `json:"dir,omitempty"`  // of plinth's data
	Bare bool   `json:"bare,omitempty"` // plinth does not track who manages which field
	Body []byte `json:"body,omitempty"` // that the handlers answer with from now on
	File string `json:"file,omitempty"` // of a profile
}

// What an order may say.
const (
	doPlinth  = "serve plinth"
	doEcho    = "serve handlers that do nothing"
	doAnswer  = "answer with this body"
	doUsage   = "say what was used"
	doProfile = "begin a CPU profile"
	doRest    = "end the CPU profile"
)

// answer is a child's reply.
type answer struct {
	Error string `json:"error,omitempty"`

	URL           string        `json:"url,omitempty"`
	CA, Cert, Key []byte        `json:",omitempty"`
	CPU           time.Duration `json:"cpu,omitempty"` // used since the process began
	RSS           int64         `json:"rss,omitempty"` // resident now, bytes
}

// child is the served side of a measurement.
type child struct {
	plinth  *server.Server
	echo    *echoServer
	profile *os.File
}

// Child is what the command Options.Child runs: a server that the measuring process
// drives. It ends when in does, that is when the measuring process has closed its pipe
// or is no more.
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
	case doUsage:
		a.CPU, a.RSS, err = usage()
	case doProfile:
		if c.profile, err = os.Create(o.File); err == nil {
			err = pprof.StartCPUProfile(c.profile)
		}
	case doRest:
		pprof.StopCPUProfile()
		err = c.profile.Close()
	default:
		err = errors.New("no such order")
	}
	return a, err
}

func (c *child) servePlinth(ctx context.Context, o *order) (answer, error) {
	s := server.New(server.Config{DSN: o.DSN, DataDir: o.Dir, Listen: "127.0.0.1:0", Untracked: o.Bare, Logf: log.Printf})
	if err := s.Open(ctx); err != nil {
		return answer{}, err
	}
	c.plinth = s
	return reached(s.RESTConfig()), nil
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
