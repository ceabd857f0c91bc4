package server

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/flagz"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/debugging"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/servingcert"
	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore/changelog"
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

	// AdvertiseAddress is the address at which members of the cluster reach the server, the
	// endpoint of the kubernetes Service, as kube-apiserver's --advertise-address says. nil: the
	// address of Listen, or the machine's if that is unspecified or loopback.
	AdvertiseAddress net.IP

	// DataDir holds what the server keeps as files: pki/ with its certificates and
	// their keys, and kubeconfig, whose current context is the admin on this server. It
	// is made if it is missing, readable by its owner only. Empty: the certificates live
	// in memory and no kubeconfig is written; see Server.RESTConfig.
	DataDir string

	// SANs are names and IP addresses that the serving certificate is made for, besides
	// those of this machine, of Listen and of the kubernetes Service.
	SANs []string

	// Serving are certificates to show to clients besides the server's own, and which versions and
	// ciphers of TLS it speaks.
	Serving servingcert.Options

	// DatabaseTimeout is how long Open waits for a database that cannot be reached, that
	// takes connections and does not answer, or whose schema somebody else has locked. It
	// tries once by default. Once open, a database may be away for any time.
	DatabaseTimeout time.Duration

	// NewDatabase lets Open take another database than the one that was last served from
	// DataDir, or make one. Otherwise Open refuses: more often a volume is not mounted, or the
	// DSN is mistaken. The other database goes on above every revision that was served from
	// DataDir, and is the known one from then on.
	NewDatabase bool

	// NewAuthority lets Open serve a database with another authority (DataDir/pki/ca.crt) than the one that the servers on
	// it have noted there. Otherwise Open refuses: clients of the one would not trust the other. The others are refused at their
	// next start.
	NewAuthority bool

	// History is how long superseded versions of objects stay readable for watches that
	// resume and for paginated lists; 5 minutes. Negative: for ever.
	History time.Duration

	// Memory is how many bytes the process is to keep within. What the server holds of objects, of recent
	// changes and of indexes is bounded by it: values of objects that do not fit are read from the database, those
	// of the least recently used resources first. 0: there is no bound, and all objects are in memory. Whoever
	// sets it also sets the Go runtime's limit, as plinth serve does.
	Memory int64

	// Keep says which superseded versions stay longer than that, for reading the past; see
	// changelog.ParseRules. nil: none. Servers that share a database have the same rules.
	Keep *changelog.Retention

	// KeepSize is how many bytes the keys and values of the versions that Keep names take at most, together: beyond
	// it those go that would go first. 0: there is no bound. Negative: the larger of 256 MiB and a tenth of what the
	// keys and values of all objects take.
	KeepSize int64

	// LeaseCommitDelay is how long the renewal of a Lease, which changes nothing but its renewTime, may
	// wait for other changes to share its transaction; at most 5 seconds, and no more than a tenth of
	// the Lease's duration. The answer waits as long, so that nothing acknowledged is lost. All
	// other changes are written at once, and take waiting ones along. 0: renewals do not wait.
	LeaseCommitDelay time.Duration

	// EventTTL is how long an Event stays after its last change, 1 hour, as kube-apiserver's
	// --event-ttl says; at least a second. Negative: for ever.
	EventTTL time.Duration

	// BackupInterval is how often a file with all objects is made, by one of the servers on the database;
	// 0: never.
	BackupInterval time.Duration

	// BackupDir is where these files are. It is made if it is missing. Empty: backups in DataDir.
	BackupDir string

	// BackupKeep is how many of these files are kept, the newest; 0: all of them.
	BackupKeep int

	// ScrubInterval is how often the whole database is searched for damage, by one of the servers on it;
	// 0: never.
	ScrubInterval time.Duration

	// Controllers are the controllers that run inside: "*" stands for all, "NAME" turns
	// one on and "-NAME" one off, as in kube-controller-manager's flag, and "none", alone,
	// stands for none; see controllers.Config. nil: all. Empty: none.
	Controllers []string

	// Components run inside besides, on the server on the database that runs the controllers, and make a whole control plane
	// of it: kube-controller-manager and kube-scheduler, as package components has them. nil: there are none.
	Components []controllers.Component

	// Page answers below PagePath, for people with a browser. nil: there is none.
	Page Page

	// RuntimeConfig switches versions of the API and resources in them on and off, as
	// kube-apiserver's --runtime-config does: "api/beta": "true", "apps/v1": "false",
	// "resource.k8s.io/v1beta1/resourceclaims": "true"; see builtin.ParseEnabled. nil: all
	// stable versions.
	RuntimeConfig map[string]string

	// Forward has versions served that are newer than the release that this process emulates
	// (kind.Emulate): those that RuntimeConfig names, or successors of what is served.
	Forward builtin.Forward
	// ServeRemovedAPIs are versions to serve that Kubernetes has removed since 1.16:
	// GROUP/VERSION, GROUP/VERSION/RESOURCE or "all"; see builtin.RemovedAPIs. Their objects
	// are those of today's versions. None by default. RuntimeConfig can leave some out:
	// "extensions/v1beta1/ingresses": "false".
	ServeRemovedAPIs []string

	// EnableAdmissionPlugins names admission plugins to run besides admission.DefaultNames,
	// which are kube-apiserver's and NodeRestriction; DisableAdmissionPlugins names plugins not
	// to run. They are called like kube-apiserver's flags.
	EnableAdmissionPlugins, DisableAdmissionPlugins []string

	// AdmissionConfigFile configures admission plugins, as kube-apiserver's
	// --admission-control-config-file does; see admission.ReadConfig. Empty: their defaults.
	AdmissionConfigFile string

	// KubeletCertificate and KubeletKey are the files of the certificate that the server shows
	// to kubelets, for logs, exec and port-forward. Empty: a certificate of its own authority,
	// for user plinth-kubelet-client. Kubelets accept it if their --client-ca-file is
	// DataDir/pki/ca.crt. At the server itself its subject names nobody.
	KubeletCertificate, KubeletKey string

	// KubeletCA is the file of the authority that has signed the certificates of kubelets.
	// Empty: they are not verified, as in kube-apiserver.
	KubeletCA string

	// KubeletAddressTypes are the types of a node's addresses at which its kubelet may be
	// reached, the best first. nil: NodeAddressTypes.
	KubeletAddressTypes []string

	// Dial connects to nodes, pods and endpoints of Services; nil: a net.Dialer. It is for
	// programs that reach them through a tunnel. Addresses of servers of this API are refused before,
	// names that it resolves to them only where the connection tells.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ServiceClusterIPRange has the addresses of Services, in CIDR notation: one range, or one
	// of IPv4 and one of IPv6, the first of which is the default of Services. Empty:
	// 10.96.0.0/12. ServiceCIDR objects add other ranges.
	ServiceClusterIPRange []string

	// ServiceNodePortRange has the node ports of Services, FIRST-LAST. Empty: 30000-32767.
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

	// MaxReads and MaxWrites are, added up, the seats that priority and fairness divides among
	// the clients, 400 and 200, as kube-apiserver's --max-requests-inflight and
	// --max-mutating-requests-inflight. Requests for which there is no seat wait, or are told to
	// come back later (429), except for members of system:masters. A watch needs a seat only
	// until it has begun. With NoFairness they are how many requests of each kind may run at
	// once.
	MaxReads  int
	MaxWrites int

	// NoFairness switches priority and fairness off; see package fairness.
	NoFairness bool

	// MaxConnections is how many connections of clients may be open at once, 4096, or fewer
	// where the process may not have 256 files more open. When there are more, the one is closed that
	// has had no request for the longest time. Negative: any number.
	MaxConnections int

	// MaxStreams is how many requests may be under way on one connection of HTTP/2, 1000; more
	// wait at the client.
	MaxStreams int

	// GoAwayChance is the chance of a request to end its connection of HTTP/2, as
	// kube-apiserver's --goaway-chance: between 0, the default, and 0.02.
	GoAwayChance float64

	// Audit configures the audit log, in the terms of kube-apiserver's --audit flags; see
	// audit.NewOptions. nil: there is no audit log.
	Audit *audit.Options

	// Authentication says who may send requests, besides who has a certificate of the server's own
	// authority or a token of a service account, in the terms of kube-apiserver's flags; see
	// authn.NewOptions. nil: anybody else is system:anonymous.
	Authentication *authn.Options

	// Authorization says who may do what, in the terms of kube-apiserver's --authorization flags;
	// see authz.NewOptions. nil: Node and RBAC.
	Authorization *authz.Options

	// Tokens says how tokens of service accounts are signed and which tokens are accepted.
	Tokens tokens.Options

	// ServeSnapshots serves /plinth/snapshots, where those who may reach it take snapshots of all objects
	// and go back to them. For servers of tests.
	ServeSnapshots bool
	// Debugging says whether /debug/pprof and /debug/flags are served, to those who may reach them.
	Debugging debugging.Options
	// Flags are those of the command, which /flagz shows; nil: there is no such page.
	Flags flagz.Reader

	// Encryption says which objects are encrypted in the database.
	Encryption encryption.Options

	// Untracked leaves metadata.managedFields alone and refuses server-side apply. It is
	// there to measure what the tracking costs, and for nothing else.
	Untracked bool

	// Log gets what an operator should know; nil: nothing. No record holds a password.
	Log *slog.Logger
}

// NodeAddressTypes is what Config.KubeletAddressTypes is by default, as in kube-apiserver.
var NodeAddressTypes = []string{
	string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
	string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
}

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
	c.SANs = slices.Clone(c.SANs)
	for i := range c.SANs {
		c.SANs[i] = strings.TrimSpace(c.SANs[i]) // "a, b" is what people write
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
	if c.MaxConnections == 0 {
		c.MaxConnections = 4096
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
