package etcd

import (
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Version is the release of etcd that a Server answers like.
const Version = "3.7.3"

// Options of a Server. Zero values are replaced by the given defaults, which are etcd's.
type Options struct {
	Name       string   // name of this member; "default"
	ClientURLs []string // URLs at which clients reach this member, for MemberList

	MaxTxnOps         int   // operations in a transaction; 128
	MaxRequestBytes   int   // size of a request; 1.5 MiB
	QuotaBackendBytes int64 // size of the database above which only deletes are accepted; 2 GiB, negative: none

	// WatchProgressInterval is how often idle watches that asked for it are told their progress; 10 minutes,
	// at least 100 ms. A stream adds up to a tenth of it.
	WatchProgressInterval time.Duration

	Dir string // directory for snapshots, which are temporary files as large as the database; the system's directory for temporary files

	Log *slog.Logger // nil: nothing
}

// Server answers etcd's requests from a Store. Its methods are safe for concurrent use.
type Server struct {
	store *sqlstore.Store
	log   changelog.Log // the Store's log, for its marks
	o     Options

	clusterID, memberID uint64

	announcing  sync.Mutex // guards the next three fields
	looked      bool       // the marks of the start were read
	announced   string     // the last value of this member's mark
	hasNamesake bool

	metrics   *metrics
	lessor    lessor
	renewals  renewals
	alarms    alarms
	quota     quota
	snapshots snapshots
}

// New returns a Server on store, which must be open on log.
func New(store *sqlstore.Store, log changelog.Log, o Options) *Server {
	s := &Server{store: store, log: log, o: o.withDefaults()}
	s.identify()
	s.metrics = newMetrics(s)
	s.lessor.init(log.Exclusive())
	s.renewals.init()
	s.quota.init(s.o.QuotaBackendBytes, store.Source().Size)
	s.snapshots.init()
	return s
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "default"
	}
	if o.MaxTxnOps <= 0 {
		o.MaxTxnOps = 128
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 1.5 * 1024 * 1024
	}
	if o.QuotaBackendBytes == 0 {
		o.QuotaBackendBytes = 2 << 30
	}
	if o.WatchProgressInterval <= 0 {
		o.WatchProgressInterval = 10 * time.Minute
	}
	o.WatchProgressInterval = max(o.WatchProgressInterval, 100*time.Millisecond)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Register adds the services to g.
func (s *Server) Register(g *grpc.Server) {
	pb.RegisterKVServer(g, kvService{Server: s})
	pb.RegisterWatchServer(g, &watchServer{s: s})
	pb.RegisterLeaseServer(g, leaseService{s: s})
	pb.RegisterMaintenanceServer(g, maintenanceService{s: s})
	pb.RegisterClusterServer(g, clusterService{s: s})
	pb.RegisterAuthServer(g, authService{s: s})
	healthpb.RegisterHealthServer(g, healthService{s: s})
	reflection.Register(g)
}

// firstRevision is the revision of an empty key space.
const firstRevision = 1

// revision returns the newest revision that reads can see.
func (s *Server) revision() int64 {
	revision, _ := changelog.Split(s.store.Revision())
	return max(revision, firstRevision)
}

// header returns the header of an answer at revision.
func (s *Server) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: s.clusterID, MemberId: s.memberID, Revision: revision, RaftTerm: raftTerm}
}

// raftTerm is in every answer, although there is no raft.
const raftTerm = 1
