package etcd

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// listed returns the members as name=urls, in order of their names.
func (m *endpoint) listed(t testing.TB) []string {
	t.Helper()
	r, err := m.cluster.MemberList(bounded(t), &pb.MemberListRequest{Linearizable: true})
	if err != nil || r.Header.Revision != 0 || r.Header.ClusterId != m.clusterID {
		t.Fatalf("list members: %v, %v", r, err)
	}
	if !slices.IsSortedFunc(r.Members, func(a, b *pb.Member) int {
		return strings.Compare(fmt.Sprintf("%016x", a.ID), fmt.Sprintf("%016x", b.ID))
	}) {
		t.Errorf("members are not in order of their ids: %v", r.Members)
	}
	var out []string
	for _, member := range r.Members {
		out = append(out, member.Name+"="+strings.Join(member.ClientURLs, ","))
	}
	slices.Sort(out)
	return out
}

func TestMemberList(t *testing.T) {
	dsn := logtest.SQLite(t)
	o := Options{ClientURLs: []string{"http://127.0.0.1:2379"}}
	m := serveOn(t, dsn, true, o)
	if got := m.listed(t); !slices.Equal(got, []string{"default=http://127.0.0.1:2379"}) {
		t.Errorf("members: %q", got)
	}
	member, cluster := m.memberID, m.clusterID
	m.stop()
	m = serveOn(t, dsn, true, o)
	if m.memberID != member || m.clusterID != cluster || member == 0 || cluster == 0 || member == cluster {
		t.Errorf("ids %x and %x were %x and %x before a restart", m.memberID, m.clusterID, member, cluster)
	}
	other := serveOn(t, logtest.SQLite(t), false, o)
	if other.memberID == member || other.clusterID == cluster {
		t.Error("two databases have the same ids")
	}
}

// The members of a shared database know of each other, and forget those that are gone.
func TestMemberListShared(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		many := make([]string, 20)
		for i := range many {
			many[i] = fmt.Sprint("http://10.0.0.1:", i)
		}
		m1 := serveOn(t, dsn, true, Options{Name: "m1", ClientURLs: many})
		m2 := serveOn(t, dsn, true, Options{Name: "m2", ClientURLs: []string{"http://" + strings.Repeat("x", 300), "http://10.0.0.2:2379"}})
		if m1.clusterID != m2.clusterID || m1.memberID == m2.memberID {
			t.Errorf("cluster %x and %x, member %x and %x", m1.clusterID, m2.clusterID, m1.memberID, m2.memberID)
		}
		all := []string{"m1=" + strings.Join(many[:urlsMost], ","), "m2=http://10.0.0.2:2379"}
		eventually(t, "listed at m2", func() bool { return slices.Contains(m2.listed(t), all[0]) })
		eventually(t, "listed at m1", func() bool { return slices.Contains(m1.listed(t), all[1]) })
		if len(m1.listed(t)) != 2 || len(m2.listed(t)) != 2 {
			t.Errorf("members at m1 %q, at m2 %q", m1.listed(t), m2.listed(t))
		}
		m2.stop()
		if got := m1.listed(t); len(got) != 1 {
			t.Errorf("members after one has stopped: %q", got)
		}
		// One that was killed leaves its marks behind, and others remove them.
		_, now, err := m1.store.Keys().Leases(t.Context(), []int64{})
		if err != nil {
			t.Fatal(err)
		}
		dead := &pb.Member{ID: 77, Name: "dead", ClientURLs: []string{"http://10.0.0.3:2379"}}
		if err := m1.log.SetMarks(t.Context(), marksOf(dead, now-memberGone.Milliseconds()-1000)); err != nil {
			t.Fatal(err)
		}
		if got := m1.listed(t); len(got) != 1 {
			t.Errorf("members with one that was killed: %q", got)
		}
		if err := m1.announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		marks, err := m1.log.Marks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name := range marks {
			if strings.HasPrefix(name, memberMark(dead.ID)) {
				t.Errorf("the mark %s of a member that is gone", name)
			}
			if len(name) > 59 {
				t.Errorf("the name %s is too long for a mark", name)
			}
		}
	})
}

// Two members with one name are told of each other.
func TestMemberNamesake(t *testing.T) {
	dsn := logtest.Postgres(t)
	var said lockedBuffer
	one := serveOn(t, dsn, true, Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	two := serveOn(t, dsn, true, Options{})
	for range 2 {
		for _, m := range []*endpoint{one, two} {
			time.Sleep(2 * time.Millisecond) // the mark is a time
			if err := m.announce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := strings.Count(said.String(), "has the same name"); n != 1 {
		t.Errorf("%d warnings of another member with the same name", n)
	}
}

// TestMemberNamesakeAtStart finds marks of the own name at the first announcement. Nothing is said of those
// that a member has left that was killed, and started again at once.
func TestMemberNamesakeAtStart(t *testing.T) {
	mine := []string{"http://10.0.0.1:2379"}
	for name, c := range map[string]struct {
		urls []string
		ago  time.Duration
		warn bool
	}{
		"another one":             {[]string{"http://10.0.0.2:2379"}, time.Second, true},
		"this one, killed":        {mine, time.Second, false},
		"another one, long ended": {[]string{"http://10.0.0.2:2379"}, memberGone + time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			var said lockedBuffer
			m := serveOn(t, "sqlite://:memory:", false, Options{Name: "one", ClientURLs: mine, Log: slog.New(slog.NewTextHandler(&said, nil))})
			_, now, err := m.store.Keys().Leases(t.Context(), []int64{})
			if err != nil {
				t.Fatal(err)
			}
			before := &pb.Member{ID: m.memberID, Name: "one", ClientURLs: c.urls}
			if err := m.log.SetMarks(t.Context(), marksOf(before, now-c.ago.Milliseconds())); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := m.announce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if c.warn {
				want = 1
			}
			if n := strings.Count(said.String(), "with the same name and other URLs was there a moment ago"); n != want || strings.Count(said.String(), "level=WARN") != want {
				t.Errorf("%d warnings, want %d: %s", n, want, said.String())
			}
		})
	}
}

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestMemberChanges(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	add := func(urls ...string) error {
		_, err := m.cluster.MemberAdd(bounded(t), &pb.MemberAddRequest{PeerURLs: urls})
		return err
	}
	wantCode(t, "add", add("http://127.0.0.1:2380"), codes.Unimplemented)
	wantError(t, "add without a URL", add(), rpctypes.ErrGRPCMemberBadURLs)
	wantError(t, "add with a bad URL", add("://"), rpctypes.ErrGRPCMemberBadURLs)
	_, err := m.cluster.MemberRemove(bounded(t), &pb.MemberRemoveRequest{ID: m.memberID})
	wantCode(t, "remove", err, codes.Unimplemented)
	_, err = m.cluster.MemberRemove(bounded(t), &pb.MemberRemoveRequest{ID: 1})
	wantError(t, "remove another", err, rpctypes.ErrGRPCMemberNotFound)
	_, err = m.cluster.MemberUpdate(bounded(t), &pb.MemberUpdateRequest{ID: m.memberID})
	wantCode(t, "update", err, codes.Unimplemented)
	_, err = m.cluster.MemberPromote(bounded(t), &pb.MemberPromoteRequest{ID: m.memberID})
	wantError(t, "promote", err, rpctypes.ErrGRPCMemberNotLearner)
}
