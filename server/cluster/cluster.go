// Package cluster makes what every cluster begins with and keeps it: the system namespaces and
// priority classes, the kubernetes Service and its endpoints, the default ServiceCIDR, the
// Leases of the servers that share a database, the authorities that extension servers trust,
// the addresses and ports of Services, and the age of Events.
//
// It is a client of the API, as any other program: it writes through a client-go
// configuration, so that admission, rules and conflicts apply. What it reads often it reads
// from the store. The package must not know listeners and certificates: the server hands it an
// Address and a Trust.
package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/sqlstore"
)

// Config says what a Cluster maintains and how often.
type Config struct {
	// Client reaches the API as a user who may do everything.
	Client *clientrest.Config
	Store  *sqlstore.Store
	// Here is the address of this server.
	Here Address
	// Trust returns what extension servers need to trust this server; nil: nothing is published for them.
	Trust func() (Trust, error)
	Times Times
	// Logger gets what an operator should know; nil: nothing.
	Logger *slog.Logger
}

// Address is where clients inside a cluster find the API.
type Address struct {
	// IP is this server's address as others reach it. If it is nil or a loopback address, the kubernetes
	// Service gets no endpoint.
	IP net.IP
	// Port is the port on which this server listens.
	Port int
	// Identity distinguishes servers that share a database, which are all endpoints of the same Service.
	// Empty: there are no other servers.
	Identity string
	// Version is the release of plinth.
	Version string
	// Tell returns the HOST:PORT at which other servers notify this one of their writes. It is empty while
	// this server does not need the notices. nil: it never needs them.
	Tell func() string
	// Ranges are the ranges of addresses and node ports for Services; the kubernetes Service has the first
	// address of the first range. The zero value stands for the defaults.
	Ranges allocate.Ranges
}

// shared tells whether other servers may serve the same database.
func (a Address) shared() bool { return a.Identity != "" }

// Times has the intervals of recurring work and the lifetimes of objects. The zero value has
// kube-apiserver's defaults, but keeps Events for ever.
type Times struct {
	// Maintain is the pause between two calls of Bootstrap: 10 seconds.
	Maintain time.Duration
	// CheckReplicas is the pause between two checks of all servers' Leases: 5 seconds. A server renews its
	// own Lease at every second check, and a Lease expires after three: 15 seconds.
	CheckReplicas time.Duration
	// Repair is the pause between two checks of the addresses and ports of all Services: 3 minutes.
	Repair time.Duration
	// EventTTL is how long an Event stays after its last change. Not positive: for ever.
	EventTTL time.Duration
	// Request is how long a request may take; less than 30 seconds count as 30.
	Request time.Duration
}

func (t Times) withDefaults() Times {
	t.Maintain = cmp.Or(t.Maintain, 10*time.Second)
	t.CheckReplicas = cmp.Or(t.CheckReplicas, 5*time.Second)
	t.Repair = cmp.Or(t.Repair, 3*time.Minute)
	return t
}

// Cluster maintains what every cluster has.
type Cluster struct {
	*clients
	config      Config
	begun       bool // Bootstrap has succeeded once; only Bootstrap uses this field, and it has one caller at a time
	policyReady atomic.Bool
	sealed      sealed
}

// New returns a Cluster that has not started. It makes no request.
func New(config Config) (*Cluster, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.Times = config.Times.withDefaults()
	if config.Here.Ranges.Addresses == nil {
		defaults, err := allocate.ParseRanges(nil, "")
		if err != nil {
			return nil, err
		}
		config.Here.Ranges = defaults
	}
	clients, err := newClients(config.Client)
	if err != nil {
		return nil, err
	}
	return &Cluster{clients: clients, config: config}, nil
}

// Run does the recurring work until ctx ends, and returns when all its goroutines have ended. Call Bootstrap
// first.
func (c *Cluster) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, j := range c.jobs() {
		all.Go(func() { j.run(ctx, c.config.Logger) })
	}
	all.Go(func() { c.repairServices(ctx) })
	all.Go(func() { c.keepTryingPolicy(ctx) })
	if c.config.Times.EventTTL > 0 {
		all.Go(func() { expireEvents(ctx, c.config.Store, c.config.Times.EventTTL, c.config.Logger) })
	}
}

// jobs returns the work that is done at fixed intervals.
func (c *Cluster) jobs() []job {
	jobs := []job{c.diskJob(), c.setBackJob(), {
		every: c.config.Times.Maintain, do: c.Bootstrap,
		failed: "what every cluster begins with could not be kept; it is tried again",
	}}
	if c.config.Here.shared() {
		jobs = append(jobs, c.replicaJob())
	}
	if c.config.Trust != nil {
		jobs = append(jobs, job{
			every: c.config.Times.Maintain, atOnce: true, do: c.publishTrust,
			failed: "authorities could not be published for extension servers",
		})
	}
	return jobs
}
