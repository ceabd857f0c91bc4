package etcd

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// requestMetrics counts requests and operations on keys.
type requestMetrics struct {
	started, handled *prometheus.CounterVec
	methods          map[string]*methodMetrics // by full name; does not change while requests run

	received, sent atomic.Int64 // bytes in messages
	pending        atomic.Int64 // writes in progress
	failed         prometheus.Counter

	ranges, puts, deletes, txns prometheus.Counter
}

func (m *requestMetrics) register(to prometheus.Registerer) {
	counter := func(name, help string) prometheus.Counter { return newCounter(to, name, help) }
	m.ranges = counter("etcd_mvcc_range_total", "Ranges that this member has read.")
	m.puts = counter("etcd_mvcc_put_total", "Puts by this member.")
	m.deletes = counter("etcd_mvcc_delete_total", "Deletes of ranges by this member.")
	m.txns = counter("etcd_mvcc_txn_total", "Transactions of more than one operation by this member.")
	m.failed = counter("etcd_server_proposals_failed_total", "Writes that the database has not taken, or not in time.")
	m.started = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "grpc_server_started_total", Help: "Requests and streams that have begun.",
	}, []string{"grpc_type", "grpc_service", "grpc_method"})
	m.handled = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "grpc_server_handled_total", Help: "Requests and streams that have ended, by the code of the answer.",
	}, []string{"grpc_type", "grpc_service", "grpc_method", "grpc_code"})
	to.MustRegister(m.started, m.handled,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "etcd_network_client_grpc_received_bytes_total", Help: "Bytes of the messages of clients.",
		}, func() float64 { return float64(m.received.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "etcd_network_client_grpc_sent_bytes_total", Help: "Bytes of the messages to clients.",
		}, func() float64 { return float64(m.sent.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "etcd_server_proposals_pending", Help: "Writes that run.",
		}, func() float64 { return float64(m.pending.Load()) }))
}

// methodMetrics counts the requests of one method.
type methodMetrics struct {
	*requestMetrics
	labels      []string
	started, ok prometheus.Counter
	writes      bool
}

// writingMethods are the methods that etcd sends through raft.
var writingMethods = map[string]bool{"Put": true, "DeleteRange": true, "Txn": true, "Compact": true, "LeaseGrant": true, "LeaseRevoke": true}

// addMethods adds the methods of services.
func (m *requestMetrics) addMethods(services map[string]grpc.ServiceInfo) {
	methods := map[string]*methodMetrics{}
	for service, info := range services {
		for _, method := range info.Methods {
			labels := []string{typeOf(method), service, method.Name}
			methods["/"+service+"/"+method.Name] = &methodMetrics{
				requestMetrics: m, labels: labels,
				started: m.started.WithLabelValues(labels...),
				ok:      m.handled.WithLabelValues(append(labels, codes.OK.String())...),
				writes:  strings.HasPrefix(service, "etcdserverpb.") && writingMethods[method.Name],
			}
		}
	}
	m.methods = methods
}

func typeOf(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	}
	return "unary"
}

func (m *methodMetrics) begin() {
	m.started.Inc()
	if m.writes {
		m.pending.Add(1)
	}
}

func (m *methodMetrics) end(err error) {
	if m.writes {
		m.pending.Add(-1)
	}
	if err == nil {
		m.ok.Inc()
		return
	}
	code := status.Code(err)
	m.handled.WithLabelValues(append(m.labels[:3:3], code.String())...).Inc()
	if m.writes && (code == codes.Unavailable || code == codes.Canceled || code == codes.DeadlineExceeded) {
		m.failed.Inc()
	}
}

// executed counts the operations of a transaction.
func (m *requestMetrics) executed(r *pb.TxnResponse) {
	if m.operations(r) > 1 {
		m.txns.Inc()
	}
}

func (m *requestMetrics) operations(r *pb.TxnResponse) (n int) {
	for _, op := range r.Responses {
		n++
		switch o := op.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			m.ranges.Inc()
		case *pb.ResponseOp_ResponsePut:
			m.puts.Inc()
		case *pb.ResponseOp_ResponseDeleteRange:
			m.deletes.Inc()
		case *pb.ResponseOp_ResponseTxn:
			n += m.operations(o.ResponseTxn) - 1
		}
	}
	return n
}
