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

// Version is the release of etcd whose answers a Server gives.
const Version = "3.7.3"

// Options of a Server. Zero values are replaced by the defaults given, those of etcd.
type Options struct {
	Name       string   // of this member; "default"
	ClientURLs []string // on which clients reach this member, as MemberList tells them

	MaxTxnOps         int   // operations of one transaction; 128
	MaxRequestBytes   int   // of one request; 1.5 MiB
	QuotaBackendBytes int64 // of the database, above which only deletes are taken; 2 GiB, negative: none

	// WatchProgressInterval is how often watches that ask for progress and have no events are
	// told how far they are; 10 minutes, at least 100 ms. A stream adds up to a tenth of it.
	WatchProgressInterval time.Duration

	Dir string // for temporary files as large as the database: snapshots; the system's directory for them

	Log *slog.Logger // nil: nothing
}

// Server answers etcd's requests from a Store. Its methods are safe for concurrent use.
type Server struct {
	store *sqlstore.Store
	log   changelog.Log // the Store's, for its marks
	o     Options

	clusterID, memberID uint64

	announcing  sync.Mutex // guards the next three
	looked      bool       // at the marks that were there at the start
	announced   string     // what this member's mark said last
	hasNamesake bool

	metrics   *metrics
	lessor    lessor
	renewals  renewals
	alarms    alarms
	quota     quota
	snapshots snapshots
}

// New returns a Server on store, which is open on log.
func New(store *sqlstore.Store, log changelog.Log, o Options) *Server {
	s := &Server{store: store, log: log, o: o.withDefaults()}
	s.identify()
	s.metrics = newMetrics(s)
	s.lessor.init(log.Exclusive())
	s.renewals.init()
	s.quota.init(s.o.QuotaBackendBytes, store.Size)
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

// firstRevision is that of an empty key space.
const firstRevision = 1

// revision returns the newest revision that reads see.
func (s *Server) revision() int64 {
	revision, _ := changelog.Split(s.store.Revision())
	return max(revision, firstRevision)
}

// header returns the header of an answer at revision.
func (s *Server) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: s.clusterID, MemberId: s.memberID, Revision: revision, RaftTerm: raftTerm}
}

// raftTerm is told by every answer. There is no raft.
const raftTerm = 1
