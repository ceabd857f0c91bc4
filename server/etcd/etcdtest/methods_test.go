package etcdtest_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// asked is a request of a method, and why plinth does not take it, "" if its answer is etcd's.
type asked struct {
	method  string
	request proto.Message
	instead string
}

// What plinth says of requests that it does not take.
const (
	noAuth      = "etcdserver: users, roles and authentication are not available; restrict who reaches this endpoint with client certificates"
	noMembers   = "etcdserver: members are the servers that run on the database; "
	noDowngrade = "etcdserver: there is no storage of etcd's that could be downgraded; restore a snapshot into another etcd instead"
)

// methodRequests are requests of the methods that random requests have not, in the order in which they are sent. me is the id of the
// member that is asked.
func methodRequests(me uint64) []asked {
	const other = 5
	validate, enable, cancel := pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE, pb.DowngradeRequest_CANCEL
	return []asked{
		{"Check", &healthpb.HealthCheckRequest{}, ""},
		{"Check", &healthpb.HealthCheckRequest{Service: "etcdserverpb.KV"}, ""},
		{"List", &healthpb.HealthListRequest{}, ""},
		{"MemberList", &pb.MemberListRequest{}, ""},
		{"MemberList", &pb.MemberListRequest{Linearizable: true}, ""},
		{"MemberAdd", &pb.MemberAddRequest{}, ""},
		{"MemberAdd", &pb.MemberAddRequest{PeerURLs: []string{"x"}}, ""},
		{"MemberRemove", &pb.MemberRemoveRequest{ID: other}, ""},
		{"MemberUpdate", &pb.MemberUpdateRequest{ID: other, PeerURLs: []string{"http://127.0.0.1:1"}}, ""},
		{"MemberPromote", &pb.MemberPromoteRequest{ID: other}, ""},
		{"MemberPromote", &pb.MemberPromoteRequest{ID: me}, ""},
		{"Defragment", &pb.DefragmentRequest{}, ""},
		{"Hash", &pb.HashRequest{}, ""},
		{"Snapshot", &pb.SnapshotRequest{}, ""},
		{"MoveLeader", &pb.MoveLeaderRequest{TargetID: other}, ""},
		{"MoveLeader", &pb.MoveLeaderRequest{TargetID: me}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: validate}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: validate, Version: "3.6"}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: validate, Version: "3.6.0-rc.1"}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: validate, Version: "3.5"}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: enable, Version: "3.7"}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: cancel}, ""},
		{"Downgrade", &pb.DowngradeRequest{Action: 7}, ""},
		{"AuthStatus", &pb.AuthStatusRequest{}, ""},
		{"AuthDisable", &pb.AuthDisableRequest{}, ""},
		{"Authenticate", &pb.AuthenticateRequest{Name: "root", Password: "x"}, ""},
		{"UserList", &pb.AuthUserListRequest{}, ""},
		{"RoleList", &pb.AuthRoleListRequest{}, ""},
		{"UserGet", &pb.AuthUserGetRequest{Name: "a"}, ""},
		{"RoleGet", &pb.AuthRoleGetRequest{Role: "a"}, ""},

		// From here on there is something in an etcd that is not in plinth.
		{"AuthEnable", &pb.AuthEnableRequest{}, noAuth},
		{"UserAdd", &pb.AuthUserAddRequest{Name: "a", Options: &authpb.UserAddOptions{NoPassword: true}}, noAuth},
		{"UserChangePassword", &pb.AuthUserChangePasswordRequest{Name: "a", Password: "b"}, noAuth},
		{"RoleAdd", &pb.AuthRoleAddRequest{Name: "a"}, noAuth},
		{"RoleGrantPermission", &pb.AuthRoleGrantPermissionRequest{Name: "a", Perm: &authpb.Permission{Key: []byte("a")}}, noAuth},
		{"UserGrantRole", &pb.AuthUserGrantRoleRequest{User: "a", Role: "a"}, noAuth},
		{"UserRevokeRole", &pb.AuthUserRevokeRoleRequest{Name: "a", Role: "a"}, noAuth},
		{"RoleRevokePermission", &pb.AuthRoleRevokePermissionRequest{Role: "a", Key: []byte("a")}, noAuth},
		{"RoleDelete", &pb.AuthRoleDeleteRequest{Role: "a"}, noAuth},
		{"UserDelete", &pb.AuthUserDeleteRequest{Name: "a"}, noAuth},
		{"MemberUpdate", &pb.MemberUpdateRequest{ID: me}, noMembers + "none has a peer URL"},
		{"MemberRemove", &pb.MemberRemoveRequest{ID: me}, noMembers + "to remove one, stop it"},
		{"Downgrade", &pb.DowngradeRequest{Action: enable, Version: "3.6"}, noDowngrade},
		{"MemberAdd", &pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:1"}}, noMembers + "to add one, start another server on it"}, // and the etcd waits for it
	}
}

// methodsElsewhere have tests of their own.
var methodsElsewhere = map[string]string{"Watch": "TestLikeEtcd, and TestHealth for that of the health service"}

// TestMethods asks etcd and plinth by every method of every service that etcd registers, but those of random requests. The answers are the same, or
// the table says what plinth answers instead. It fails when an etcd has a method that it does not know.
func TestMethods(t *testing.T) {
	t.Parallel()
	random := map[protoreflect.FullName]bool{}
	for _, s := range etcdtest.Generate(1, 1000) {
		random[s.Request.ProtoReflect().Descriptor().FullName()] = true
	}
	etcd, plinth := dialMethods(t, realEtcd), dialMethods(t, inMemory)
	compared := map[string]bool{}
	theirs, ours := methodRequests(etcd.member), methodRequests(plinth.member)
	for i, r := range theirs {
		got, want := plinth.ask(t, ours[i]), etcd.ask(t, r)
		if r.instead != "" {
			want = "error Unimplemented: " + r.instead
		}
		if got != want {
			t.Errorf("%s %v\nwant %s\ngot  %s", r.method, r.request, want, got)
		}
		compared[r.method] = true
	}
	for name, m := range etcd.methods {
		if !compared[name] && !random[m.Input().FullName()] && methodsElsewhere[name] == "" {
			t.Errorf("nothing is compared of %s", m.FullName())
		}
	}
}

// methods are a connection to a member, and the methods of all services that etcd registers, by their names.
type methods struct {
	conn    *grpc.ClientConn
	member  uint64
	methods map[string]protoreflect.MethodDescriptor
}

func dialMethods(t *testing.T, at endpoint) *methods {
	t.Helper()
	m := &methods{conn: etcdtest.Dial(t, at(t)), methods: map[string]protoreflect.MethodDescriptor{}}
	first, err := pb.NewKVClient(m.conn).Range(patiently(t), &pb.RangeRequest{Key: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	m.member = first.Header.MemberId
	for _, file := range []protoreflect.FileDescriptor{pb.File_rpc_proto, healthpb.File_grpc_health_v1_health_proto} {
		for i := range file.Services().Len() {
			of := file.Services().Get(i).Methods()
			for j := range of.Len() {
				m.methods[string(of.Get(j).Name())] = of.Get(j)
			}
		}
	}
	return m
}

// What differs from server to server: ids, the leader's term, addresses, and hashes of all buckets, which have the members.
var (
	ownNumbers   = regexp.MustCompile(`\b(cluster_id|member_id|raft_term):\d+ *`)
	ownAddresses = regexp.MustCompile(` *(client|peer)URLs:"[^"]*"`)
	ownHash      = regexp.MustCompile(`\bhash:\d+`)
)

// ask returns the answer to a request as a line, without what differs from server to server.
func (m *methods) ask(t *testing.T, r asked) string {
	t.Helper()
	method := m.methods[r.method]
	if method == nil {
		t.Fatalf("no method %s", r.method)
	}
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	if r.method == "Snapshot" {
		return m.snapshot(t, r.request.(*pb.SnapshotRequest))
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	answer := out.New().Interface()
	if err := m.conn.Invoke(patiently(t), path, r.request, answer); err != nil {
		return errorLine(err)
	}
	line := strings.ReplaceAll(fmt.Sprint(answer), "  ", " ")
	line = ownAddresses.ReplaceAllString(ownNumbers.ReplaceAllString(line, ""), "")
	if r.method == "Hash" {
		line = ownHash.ReplaceAllString(line, "hash:1")
	}
	return strings.ReplaceAll(line, strconv.FormatUint(m.member, 10), "1")
}

// snapshot tells of a snapshot what does not depend on its size.
func (m *methods) snapshot(t *testing.T, r *pb.SnapshotRequest) string {
	t.Helper()
	stream, err := pb.NewMaintenanceClient(m.conn).Snapshot(patiently(t), r)
	if err != nil {
		return errorLine(err)
	}
	var blobs []byte
	versions := map[string]bool{}
	headers, left := 0, uint64(0)
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errorLine(err)
		}
		if part.Header != nil {
			headers++
		}
		blobs, left, versions[part.Version] = append(blobs, part.Blob...), part.RemainingBytes, true
	}
	n := max(0, len(blobs)-sha256.Size)
	sum := sha256.Sum256(blobs[:n])
	return fmt.Sprintf("versions %v, %d headers, %d bytes left, the sum at its end is right: %t", versions, headers, left, bytes.Equal(sum[:], blobs[n:]))
}
