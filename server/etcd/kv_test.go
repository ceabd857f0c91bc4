package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// The answers in testdata/kv.txt are those of etcd 3.7.3. With -etcd they are asked for anew.
var askEtcd = flag.String("etcd", "", "write testdata/kv.txt from the answers of a new etcd at `HOST:PORT`")

const kvGolden = "testdata/kv.txt"

func TestKVAnswersAsEtcd(t *testing.T) {
	if *askEtcd != "" {
		conn := dial(t, *askEtcd)
		var all strings.Builder
		for _, s := range kvScripts() {
			fmt.Fprintf(&all, "# %s\n%s\n", s.name, play(t, conn, s, grantByService(conn)))
		}
		if err := os.WriteFile(kvGolden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := readGolden(t)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := startMember(t, d.Fresh(t), Options{})
		for _, s := range kvScripts() {
			t.Run(s.name, func(t *testing.T) {
				got := play(t, m.conn, s, m.grantInStore)
				compareLines(t, want[s.name], got)
			})
		}
	})
}

// compareLines tells the first few lines that differ, with the requests before them.
func compareLines(t *testing.T, want, got string) {
	t.Helper()
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(wants) != len(gots) {
		t.Errorf("%d lines instead of %d: is testdata/kv.txt up to date?", len(gots), len(wants))
	}
	request, told := "", 0
	for i := range min(len(wants), len(gots)) {
		if strings.HasPrefix(gots[i], ">") {
			request = gots[i]
		}
		if wants[i] != gots[i] && told < 10 {
			t.Errorf("%s\n etcd  %s\n plinth%s", request, wants[i], gots[i])
			told++
		}
	}
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(kvGolden)
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]string)
	for _, part := range strings.Split(string(data), "# ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		parts[name] = strings.TrimSuffix(text, "\n")
	}
	return parts
}

// kvScript is requests that are made one after another, beginning with no keys. Revisions in them
// are relative: kvBase is the newest before the first of them.
type kvScript struct {
	name     string
	requests []any
}

const kvBase = 1_000_000

// kvGrant asks for a lease of 10 minutes.
type kvGrant int64

type kvGranter func(ctx context.Context, id int64) error

func grantByService(conn *grpc.ClientConn) kvGranter {
	return func(ctx context.Context, id int64) error {
		_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: 600})
		return err
	}
}

func (m *member) grantInStore(ctx context.Context, id int64) error {
	_, err := m.store.Keys().Do(ctx, sqlstore.Transaction{
		Leases: []int64{id},
		Run: func(tx *sqlstore.Tx) error {
			if _, ok := tx.Lease(id); !ok {
				tx.Grant(id, 600)
			}
			return nil
		},
	})
	return err
}

// play makes the requests of a script and returns them with the answers as text.
func play(t *testing.T, conn *grpc.ClientConn, s kvScript, grantLease kvGranter) string {
	t.Helper()
	ctx := patiently(t)
	kv := pb.NewKVClient(conn)
	for range 3 { // so that there is a revision before kvBase
		if _, err := kv.Put(ctx, kvPut("a", "")); err != nil {
			t.Fatal(err)
		}
	}
	cleared, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	shift := cleared.Header.Revision - kvBase
	var text strings.Builder
	for _, r := range s.requests {
		if id, ok := r.(kvGrant); ok {
			if err := grantLease(ctx, int64(id)); err != nil {
				t.Logf("grant %d: %v", id, err) // another script has
			}
			continue
		}
		fmt.Fprintf(&text, "> %.300s\n", fmt.Sprintf("%T %s", r, textOf(r.(proto.Message))))
		moveRequest(r, shift)
		text.WriteString(answerText(ctx, kv, r, shift))
	}
	return text.String()
}

func answerText(ctx context.Context, kv pb.KVClient, r any, shift int64) string {
	var resp proto.Message
	var err error
	streamed := ""
	switch r := r.(type) {
	case *pb.RangeRequest:
		resp, err = kv.Range(ctx, r)
		streamed = streamText(ctx, kv, r, shift)
	case *pb.PutRequest:
		resp, err = kv.Put(ctx, r)
	case *pb.DeleteRangeRequest:
		resp, err = kv.DeleteRange(ctx, r)
	case *pb.TxnRequest:
		resp, err = kv.Txn(ctx, r)
	case *pb.CompactionRequest:
		resp, err = kv.Compact(ctx, r)
	}
	return oneAnswer("", resp, err, shift) + streamed
}

func oneAnswer(how string, resp proto.Message, err error, shift int64) string {
	if err != nil {
		return fmt.Sprintf("!%s %v: %s\n", how, status.Code(err), status.Convert(err).Message())
	}
	moveAnswer(resp, -shift)
	return fmt.Sprintf("<%s %s\n", how, textOf(resp))
}

// streamText returns what the parts of a stream are together. An etcd answers a target without an order with what it
// has lost keys of.
func streamText(ctx context.Context, kv pb.KVClient, r *pb.RangeRequest, shift int64) string {
	if r.SortTarget != pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_NONE {
		return ""
	}
	resp, err := allParts(kv.RangeStream(ctx, r))
	return oneAnswer(" stream", resp, err, shift)
}

func allParts(stream pb.KV_RangeStreamClient, err error) (*pb.RangeResponse, error) {
	all := &pb.RangeResponse{}
	for err == nil {
		var part *pb.RangeStreamResponse
		if part, err = stream.Recv(); err == nil {
			proto.Merge(all, part.RangeResponse)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// textOf returns a message as text, which protobuf itself writes with one space or two.
func textOf(m proto.Message) string { return strings.ReplaceAll(fmt.Sprint(m), "  ", " ") }

// moveRequest adds shift to revisions that are relative to kvBase.
func moveRequest(r any, shift int64) {
	move := func(revisions ...*int64) {
		for _, p := range revisions {
			if *p > kvBase/2 && *p < 2*kvBase {
				*p += shift
			}
		}
	}
	switch r := r.(type) {
	case *pb.RangeRequest:
		move(&r.Revision, &r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision)
	case *pb.CompactionRequest:
		move(&r.Revision)
	case *pb.TxnRequest:
		for _, c := range r.Compare {
			switch u := c.TargetUnion.(type) {
			case *pb.Compare_ModRevision:
				move(&u.ModRevision)
			case *pb.Compare_CreateRevision:
				move(&u.CreateRevision)
			}
		}
		for _, op := range append(r.Success[:len(r.Success):len(r.Success)], r.Failure...) {
			if op.GetRequestRange() != nil {
				moveRequest(op.GetRequestRange(), shift)
			}
			if op.GetRequestTxn() != nil {
				moveRequest(op.GetRequestTxn(), shift)
			}
		}
	}
}

// moveAnswer adds shift to all revisions that are set, and takes out what no two clusters share.
func moveAnswer(resp any, shift int64) {
	switch r := resp.(type) {
	case *pb.RangeResponse:
		moveHeader(r.Header, shift)
		moveKeys(shift, r.Kvs...)
	case *pb.PutResponse:
		moveHeader(r.Header, shift)
		moveKeys(shift, r.PrevKv)
	case *pb.DeleteRangeResponse:
		moveHeader(r.Header, shift)
		moveKeys(shift, r.PrevKvs...)
	case *pb.CompactionResponse:
		moveHeader(r.Header, shift)
	case *pb.TxnResponse:
		moveHeader(r.Header, shift)
		for _, op := range r.Responses {
			switch o := op.Response.(type) {
			case *pb.ResponseOp_ResponseRange:
				moveAnswer(o.ResponseRange, shift)
			case *pb.ResponseOp_ResponsePut:
				moveAnswer(o.ResponsePut, shift)
			case *pb.ResponseOp_ResponseDeleteRange:
				moveAnswer(o.ResponseDeleteRange, shift)
			case *pb.ResponseOp_ResponseTxn:
				moveAnswer(o.ResponseTxn, shift)
			}
		}
	}
}

func moveHeader(h *pb.ResponseHeader, shift int64) {
	// What is left says whether a header is filled.
	h.ClusterId, h.MemberId, h.RaftTerm = min(h.ClusterId, 1), min(h.MemberId, 1), min(h.RaftTerm, 1)
	if h.Revision != 0 {
		h.Revision += shift
	}
}

func moveKeys(shift int64, kvs ...*mvccpb.KeyValue) {
	for _, kv := range kvs {
		if kv != nil {
			kv.ModRevision += shift
			kv.CreateRevision += shift
		}
	}
}
