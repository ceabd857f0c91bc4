package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admit"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/tokens"
)

// Config says how a Server runs. The zero value is a server that keeps everything in
// memory and listens on a free port of the loopback interface.
type Config struct {
	// DSN names the database: sqlite://PATH, postgres://… or mysql://… (see
	// dialects.Open). Empty: plinth.db in DataDir, or a database in memory if DataDir is
	// empty too.
	DSN string

	// Listen is the address to listen on, HOST:PORT. Port 0 takes a free port; an empty
	// host listens on all interfaces. Empty: 127.0.0.1:0.
	Listen string

	// DataDir holds what the server keeps as files: pki/ with its certificates and
	// their keys, and kubeconfig, whose current context is the admin on this server. It
	// is made if it is missing, readable by its owner only. Empty: the certificates live
	// in memory and no kubeconfig is written; see Server.RESTConfig.
	DataDir string

	// SANs are names and IP addresses that the serving certificate is made for, besides
	// those of this machine, of Listen and of the kubernetes Service.
	SANs []string

	// DatabaseTimeout is how long Open waits for a database that cannot be reached. Not at
	// all by default. Once open, a database may be away for any time.
	DatabaseTimeout time.Duration

	// History is how long superseded versions of objects stay readable for watches that
	// resume and for paginated lists; 5 minutes. Negative: for ever.
	History time.Duration

	// EventTTL is how long an Event stays after its last change, 1 hour, as kube-apiserver's
	// --event-ttl says; at least a second. Negative: for ever.
	EventTTL time.Duration

	// Controllers are the controllers that run inside: "*" stands for all, "NAME" turns
	// one on and "-NAME" one off, as in kube-controller-manager's flag; see
	// control.Config. nil: all. Empty: none.
	Controllers []string

	// RuntimeConfig switches versions of the API and resources in them on and off, as
	// kube-apiserver's --runtime-config does: "api/beta": "true", "apps/v1": "false",
	// "resource.k8s.io/v1beta1/resourceclaims": "true"; see builtin.ParseEnabled. nil: all
	// stable versions.
	RuntimeConfig map[string]string
	// ServeRemovedAPIs are versions to serve that Kubernetes has removed since 1.16:
	// GROUP/VERSION, GROUP/VERSION/RESOURCE or "all"; see builtin.RemovedAPIs. Their objects
	// are those of today's versions. None by default. RuntimeConfig can leave some out:
	// "extensions/v1beta1/ingresses": "false".
	ServeRemovedAPIs []string

	// EnableAdmissionPlugins and DisableAdmissionPlugins name admission plugins to run besides
	// admit.DefaultNames, which are kube-apiserver's, and those of them not to. They have the
	// names of kube-apiserver's flags.
	EnableAdmissionPlugins, DisableAdmissionPlugins []string

	// AdmissionConfigFile configures admission plugins, as kube-apiserver's
	// --admission-control-config-file does; see admit.ReadConfig. Empty: their defaults.
	AdmissionConfigFile string

	// KubeletCertificate and KubeletKey are the files of what the server shows to kubelets,
	// for logs, exec and port-forward. Empty: a certificate of its own authority, for user
	// plinth-kubelet-client in group system:masters, which kubelets accept that have
	// DataDir/pki/ca.crt for their --client-ca-file.
	KubeletCertificate, KubeletKey string

	// KubeletCA is the file of the authority that has signed the kubelets' own certificates.
	// Empty: these are not verified, as in kube-apiserver.
	KubeletCA string

	// KubeletAddressTypes are the types of a node's addresses at which its kubelet is looked
	// for, in this order. nil: NodeAddressTypes.
	KubeletAddressTypes []string

	// Dial connects to nodes, pods and endpoints of Services; nil: a net.Dialer. It is for
	// programs that reach them through a tunnel.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ServiceClusterIPRange is where the addresses of Services are from, in CIDR notation:
	// one range, or one of IPv4 and one of IPv6, of which the first is what Services have
	// by default. Empty: 10.96.0.0/12. Other ranges are added by ServiceCIDR objects.
	ServiceClusterIPRange []string

	// ServiceNodePortRange is where the node ports of Services are from, FIRST-LAST. Empty:
	// 30000-32767.
	ServiceNodePortRange string

	// ShutdownDelay is how long the server goes on after Shutdown with /readyz failing, so
	// that load balancers notice before connections are refused. None by default.
	ShutdownDelay time.Duration

	// ShutdownTimeout bounds Close: what still runs then is cut off. 30 seconds; it
	// includes ShutdownDelay.
	ShutdownTimeout time.Duration

	// Linger is how long after its last response a stopping server waits for clients to
	// close their connections, so that none sends a request into a closing one. 1 second.
	Linger time.Duration

	// RequestTimeout bounds every request but watches, 60 seconds, as kube-apiserver's
	// --request-timeout does. A client may ask for less with the parameter timeout.
	RequestTimeout time.Duration

	// MaxReads and MaxWrites are how many requests of each kind may run at once, 400 and
	// 200, as kube-apiserver's --max-requests-inflight and
	// --max-mutating-requests-inflight. More are told to come back later (429), except
	// for members of system:masters. Watches do not count.
	MaxReads  int
	MaxWrites int

	// Audit says what of requests goes to an audit log and where that is, in the terms of
	// kube-apiserver's --audit flags; see audit.NewOptions. nil: there is no such log.
	Audit *audit.Options

	// Tokens says how tokens of service accounts are signed and which tokens are believed.
	Tokens tokens.Options

	// Untracked leaves metadata.managedFields alone and refuses server-side apply. It is
	// there to measure what the tracking costs, and for nothing else.
	Untracked bool

	// Logf reports what an operator should know; nil: nothing. No line holds a password.
	Logf func(format string, args ...any)
}

// ErrConfig is wrapped by errors of Open that say what to write in a Config instead.
var ErrConfig = errors.New("bad configuration")

func (c Config) withDefaults() Config {
	if c.DSN == "" && c.DataDir == "" {
		c.DSN = "sqlite://:memory:"
	} else if c.DSN == "" {
		c.DSN = "sqlite://" + filepath.Join(c.DataDir, "plinth.db")
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.EventTTL == 0 {
		c.EventTTL = time.Hour
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if c.KubeletAddressTypes == nil {
		c.KubeletAddressTypes = NodeAddressTypes
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 30 * time.Second
	}
	if c.Linger == 0 {
		c.Linger = time.Second
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 60 * time.Second
	}
	if c.MaxReads == 0 {
		c.MaxReads = 400
	}
	if c.MaxWrites == 0 {
		c.MaxWrites = 200
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	return c
}

// check finds what can be known to be wrong without any I/O.
func (c *Config) check() error {
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return configError("listen address %q: write HOST:PORT, such as 127.0.0.1:6443, or port 0 for a free one", c.Listen)
	}
	if err := dialects.Check(c.DSN, dialects.Options{}); err != nil {
		return configError("%w", err)
	}
	if err := control.Check(c.Controllers); err != nil {
		return configError("%w", err)
	}
	if err := audit.Check(c.Audit); err != nil {
		return configError("audit: %w", err)
	}
	if err := c.Tokens.Check(); err != nil {
		return configError("%w", err)
	}
	enabled, err := builtin.ParseEnabled(c.RuntimeConfig)
	if err != nil {
		return configError("runtime config: %w", err)
	}
	if _, err := enabled.Removed(c.ServeRemovedAPIs); err != nil {
		return configError("%w", err)
	}
	if err := admit.Check(c.EnableAdmissionPlugins, c.DisableAdmissionPlugins); err != nil {
		return configError("%w", err)
	}
	if c.EventTTL > 0 && c.EventTTL < time.Second {
		return configError("event TTL %v is less than a second: write a duration such as 1h", c.EventTTL)
	}
	if err := c.checkKubelets(); err != nil {
		return err
	}
	if _, err := allocate.ParseRanges(c.ServiceClusterIPRange, c.ServiceNodePortRange); err != nil {
		return configError("%w", err)
	}
	for _, name := range c.SANs {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			return configError("name %q for the certificate: write a DNS name or an IP address, such as plinth.example.com", name)
		}
	}
	if c.ShutdownDelay < 0 || c.ShutdownTimeout < 0 || c.RequestTimeout < 0 {
		return configError("a timeout is negative: write a duration such as 30s")
	}
	if c.ShutdownDelay >= c.ShutdownTimeout {
		return configError("shutdown delay %v: write less than the shutdown timeout, %v", c.ShutdownDelay, c.ShutdownTimeout)
	}
	return nil
}

func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
}
