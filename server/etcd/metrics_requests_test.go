package etcd

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestRequestMetrics sends one request of each kind.
func TestRequestMetrics(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	ctx, kv := patiently(t), pb.NewKVClient(m.conn)
	for _, ask := range []func() error{
		func() error { _, err := kv.Put(ctx, kvPut("a", "1")); return err },
		func() error { _, err := kv.Range(ctx, kvGet("a", "")); return err },
		func() error { _, err := kv.Txn(ctx, kvTxn(kvPut("b", "1"))); return err },
		func() error {
			_, err := kv.Txn(ctx, kvTxn(kvPut("c", "1"), kvTxn(kvGet("a", ""), kvDel("b", ""))))
			return err
		},
		func() error { _, err := kv.DeleteRange(ctx, kvDel("a", "")); return err },
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kv.Range(ctx, &pb.RangeRequest{}); err == nil {
		t.Error("no error without a key")
	}
	watch, err := pb.NewWatchClient(m.conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	out := httptest.NewRecorder()
	m.metrics.handler().ServeHTTP(out, httptest.NewRequest("GET", "/metrics", nil))
	text := out.Body.String()
	const kvOf = `grpc_service="etcdserverpb.KV",grpc_type="unary"`
	for _, want := range []string{
		"etcd_mvcc_put_total 3\n", "etcd_mvcc_range_total 2\n", "etcd_mvcc_delete_total 2\n", "etcd_mvcc_txn_total 1\n",
		`grpc_server_started_total{grpc_method="Range",` + kvOf + "} 2\n",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Range",` + kvOf + "} 1\n",
		`grpc_server_handled_total{grpc_code="InvalidArgument",grpc_method="Range",` + kvOf + "} 1\n",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Txn",` + kvOf + "} 2\n",
		`grpc_server_started_total{grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1` + "\n",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 0` + "\n",
		"etcd_server_proposals_committed_total 5\n", "etcd_server_proposals_applied_total 5\n",
		"etcd_server_proposals_pending 0\n", "etcd_server_proposals_failed_total 0\n", "etcd_server_leader_changes_seen_total 0\n",
		"etcd_debugging_mvcc_watcher_total 1\n",
		`etcd_disk_backend_commit_duration_seconds_bucket{le="+Inf"} 4` + "\n", "etcd_disk_backend_commit_duration_seconds_count 4\n",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("not in the metrics: %s", want)
		}
	}
	for _, name := range []string{"received", "sent"} {
		if !regexp.MustCompile(`\netcd_network_client_grpc_` + name + `_bytes_total [1-9]`).MatchString(text) {
			t.Errorf("no bytes %s", name)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
