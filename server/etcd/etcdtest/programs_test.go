package etcdtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// command is one of etcdctl or etcdutl.
type command struct {
	line    string // its arguments. ENDPOINT is HOST:PORT of the server, LEASE the lease that was granted last, ME the member's id in hex
	input   string // its standard input
	until   string // it runs until it has written that, then it is stopped; until it ends if that is ""
	instead string // why plinth does not do it, where an etcd does; such a command is not sent to the etcd
}

// ctlCommands are commands of etcdctl of every kind, in the order in which they run on an empty key space.
var ctlCommands = []command{
	{line: "put a 1"},
	{line: "put a 2 --prev-kv"},
	{line: "put b", input: "3"},
	{line: "get a"},
	{line: "get a --rev=2 --write-out=json"},
	{line: "get --prefix a --keys-only"},
	{line: "get --from-key a --count-only --write-out=fields"},
	{line: "get a z --order=DESCEND --sort-by=MODIFY --limit=1"},
	{line: "get a --consistency=s --hex"},
	{line: "get --from-key a --stream"}, // 3.6 does not know the flag
	{line: "txn", input: "mod(\"a\") > \"0\"\n\nput a 5\nget a\n\nget b\n\n"},
	{line: "del b --prev-kv"},
	{line: "compaction 3"},
	{line: "compaction 3"},
	{line: "compaction 4 --physical"},
	{line: "get a --rev=2"},
	{line: "watch a --rev=1"},
	{line: "watch a --rev=5", until: "a\n5\n"},
	{line: "endpoint health"},
	{line: "endpoint health --cluster --write-out=json"},
	{line: "endpoint status --write-out=table"},
	{line: "endpoint status --cluster --write-out=fields"},
	{line: "endpoint hashkv --write-out=json"},
	{line: "endpoint hashkv --rev=5"},
	{line: "snapshot save snapshot.db"},
	{line: "lease grant 600"},
	{line: "put l x --lease=LEASE"},
	{line: "put l y --ignore-lease"},
	{line: "lease timetolive LEASE --keys"},
	{line: "lease keep-alive LEASE --once"},
	{line: "lease list"},
	{line: "lease revoke LEASE"},
	{line: "get l"},
	{line: "lock mine echo done"},
	{line: "elect mine me", until: "me\n"},
	{line: "check datascale --load=s"},
	{line: "alarm list"},
	{line: "alarm disarm"},
	{line: "defrag"},
	{line: "defrag --cluster"},
	{line: "member list"},
	{line: "member list --write-out=json"},
	{line: "member remove 5"},
	{line: "member update 5 --peer-urls=http://127.0.0.1:1"},
	{line: "member promote 5"},
	{line: "member promote ME"},
	{line: "move-leader 5"},
	{line: "downgrade validate 3.6"},
	{line: "downgrade validate 3.5"},
	{line: "downgrade cancel"},
	{line: "auth status"},
	{line: "auth disable"},
	{line: "user list"},
	{line: "user get a"},
	{line: "role list"},
	{line: "role get a"},
	{line: "auth enable", instead: noAuth},
	{line: "user add a:b", instead: noAuth},
	{line: "user delete a", instead: noAuth},
	{line: "user passwd a --interactive=false", input: "b\n", instead: noAuth},
	{line: "user grant-role a b", instead: noAuth},
	{line: "user revoke-role a b", instead: noAuth},
	{line: "role add a", instead: noAuth},
	{line: "role delete a", instead: noAuth},
	{line: "role grant-permission a read b", instead: noAuth},
	{line: "role revoke-permission a b", instead: noAuth},
	{line: "member add a --peer-urls=http://127.0.0.1:1", instead: noMembers + "to add one, start another server on it"},
	{line: "member remove ME", instead: noMembers + "to remove one, stop it"},
	{line: "member update ME --peer-urls=http://127.0.0.1:1", instead: noMembers + "none has a peer URL"},
	{line: "downgrade enable 3.6", instead: noDowngrade},
}

// utlCommands are those of etcdutl on the snapshot that etcdctl has saved.
var utlCommands = []command{
	{line: "snapshot status snapshot.db --write-out=json"},
	{line: "snapshot restore snapshot.db --data-dir=restored"},
	{line: "snapshot restore snapshot.db --data-dir=bumped --bump-revision=1000 --mark-compacted"},
	{line: "snapshot restore snapshot.db --data-dir=restored"},
	{line: "hashkv snapshot.db"},
	{line: "hashkv restored/member/snap/db"},
	{line: "defrag --data-dir=restored"},
	{line: "migrate --data-dir=bumped --target-version=3.7"},
	{line: "migrate --data-dir=bumped --target-version=3.6"},
}

// commandsElsewhere are not in the tables.
var commandsElsewhere = map[string]string{
	"completion":  "no server is asked",
	"help":        "no server is asked",
	"options":     "no server is asked",
	"version":     "no server is asked",
	"check perf":  "it sends 150 writes a second for a minute, and says whether the machine is fast enough",
	"make-mirror": "TestMakeMirror",
}

// TestPrograms has etcdctl and etcdutl of each release do on plinth and on etcd 3.7 whatever they can. They print the same, or the table says
// what plinth refuses. It fails when one of them has a command that it does not know.
func TestPrograms(t *testing.T) {
	needOlder(t)
	t.Parallel()
	for _, r := range releases() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			etcd, plinth := newTerminal(t, r, realEtcd), newTerminal(t, r, inMemory)
			for _, c := range ctlCommands {
				got, want := plinth.ctl(t, c), ""
				if c.instead == "" {
					want = etcd.ctl(t, c)
				} else {
					want = fmt.Sprintf("Error: rpc error: code = Unimplemented desc = %s\nexit 1\n", c.instead)
				}
				if got != want {
					t.Errorf("etcdctl %s\nwant %s\ngot  %s", c.line, want, got)
				}
			}
			for _, c := range utlCommands {
				if want, got := etcd.run(t, "etcdutl", c), plinth.run(t, "etcdutl", c); got != want {
					t.Errorf("etcdutl %s\nwant %s\ngot  %s", c.line, want, got)
				}
			}
			if want, got := etcd.restored(t), plinth.restored(t); got != want || !strings.Contains(got, `key:"a"`) {
				t.Errorf("an etcd on what was restored has %s, want %s", got, want)
			}
			allKnown(t, etcdtest.Program(t, "etcdctl"+r.suffix), ctlCommands)
			allKnown(t, etcdtest.Program(t, "etcdutl"+r.suffix), utlCommands)
		})
	}
}

// TestMakeMirror has etcdctl of each release copy keys within a plinth, and what is written to them meanwhile.
func TestMakeMirror(t *testing.T) {
	needOlder(t)
	for _, r := range releases() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			plinth := newTerminal(t, r, inMemory)
			plinth.ctl(t, command{line: "put from/early 1"})
			ctx, cancel := context.WithCancel(t.Context())
			mirror := plinth.command(ctx, t, "etcdctl", command{line: "--endpoints=ENDPOINT make-mirror --prefix=from/ --dest-prefix=to/ ENDPOINT"})
			var said bytes.Buffer
			mirror.Stdout, mirror.Stderr = &said, &said
			if err := mirror.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cancel()
				_ = mirror.Wait()
			}()
			plinth.await(t, "to/early")
			plinth.ctl(t, command{line: "put from/late 2"})
			plinth.await(t, "to/late")
		})
	}
}

// terminal runs the programs of a release of etcd in a directory of its own, on a server.
type terminal struct {
	release
	dir, endpoint, lease string
	kv                   pb.KVClient
	me                   uint64
}

func newTerminal(t *testing.T, r release, at endpoint) *terminal {
	t.Helper()
	term := &terminal{release: r, dir: t.TempDir(), endpoint: at(t)}
	term.kv = pb.NewKVClient(etcdtest.Dial(t, term.endpoint))
	first, err := term.kv.Range(patiently(t), &pb.RangeRequest{Key: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	term.me = first.Header.MemberId
	return term
}

// await waits until a key is there.
func (term *terminal) await(t *testing.T, key string) {
	t.Helper()
	ctx := patiently(t)
	for {
		r, err := term.kv.Range(ctx, &pb.RangeRequest{Key: []byte(key)})
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if r.Count > 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ctl runs etcdctl.
func (term *terminal) ctl(t *testing.T, c command) string {
	t.Helper()
	c.line = "--endpoints=ENDPOINT --command-timeout=60s " + c.line
	return term.run(t, "etcdctl", c)
}

var leaseGranted = regexp.MustCompile(`^lease ([0-9a-f]+) granted`)

// run returns what a command prints and how it ends, without what differs from server to server.
func (term *terminal) run(t *testing.T, program string, c command) string {
	t.Helper()
	ctx, cancel := context.WithCancel(patiently(t))
	defer cancel()
	cmd := term.command(ctx, t, program, c)
	var stdout, stderr written
	stdout.until, stdout.reached = c.until, cancel
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	end := fmt.Sprintf("exit %d", cmd.ProcessState.ExitCode())
	switch {
	case c.until != "" && stdout.has(c.until):
		end = "stopped"
	case err != nil && !errors.As(err, &exit), ctx.Err() != nil:
		t.Fatalf("%s %s: %v: %s%s", program, c.line, err, stdout.String(), stderr.String())
	}
	out := stdout.String()
	if m := leaseGranted.FindStringSubmatch(out); m != nil {
		term.lease = m[1]
	}
	return term.levelled(out + errorLines(stderr.String()) + end + "\n")
}

func (term *terminal) command(ctx context.Context, t *testing.T, program string, c command) *exec.Cmd {
	t.Helper()
	line := strings.NewReplacer("ENDPOINT", term.endpoint, "LEASE", term.lease, "ME", fmt.Sprintf("%x", term.me)).Replace(c.line)
	cmd := exec.CommandContext(ctx, etcdtest.Program(t, program+term.suffix), strings.Fields(line)...)
	cmd.Dir, cmd.Stdin = term.dir, strings.NewReader(c.input)
	return cmd
}

// restored returns the keys that an etcd serves on the directory that etcdutl has restored.
func (term *terminal) restored(t *testing.T) string {
	t.Helper()
	kv := pb.NewKVClient(etcdtest.Start(t, "--data-dir="+filepath.Join(term.dir, "restored")))
	r, err := kv.Range(patiently(t), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v at %d", r.Kvs, r.Header.Revision)
}

// errorLines returns the lines of standard error that are no log.
func errorLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "20") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What differs from server to server: ids, addresses, sizes, times, the leader's term, the raft index, and the hash of a whole file.
var serversOwn = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?s)^.*[│|] +ENDPOINT .*$`), "a table\n"}, // what is in it other formats show, too
	{regexp.MustCompile(`\b[0-9a-f]{14,16}\b`), "ID"},
	{regexp.MustCompile(`("(?:cluster_id|member_id|ID|leader)": ?)\d+`), "${1}ID"},
	{regexp.MustCompile(`("(?:ClusterID|MemberID|Leader)" : )\d+`), "${1}ID"},
	{regexp.MustCompile(`("(?:raft_term|raftTerm|raftIndex|raftAppliedIndex|totalSize)": ?)\d+`), "${1}N"},
	{regexp.MustCompile(`("(?:RaftTerm|RaftIndex|RaftAppliedIndex|DBSize|DBSizeInUse)" : )\d+`), "${1}N"},
	{regexp.MustCompile(`^\{"hash":\d+`), `{"hash":N`},
	{regexp.MustCompile(`,?"peerURLs":\[[^]]*\]`), ""},
	{regexp.MustCompile(`(started, default, )[^,]*`), "${1}PEER"},
	{regexp.MustCompile(`\[?(?:http://)?127\.0\.0\.1:\d+\]?`), "ADDRESS"},
	{regexp.MustCompile(`took"?[ :=]+"?[0-9.a-zµ]+"?`), "took"},
	{regexp.MustCompile(`(?s)\d+ / \d+ \[.*\d p/s`), ""},
	{regexp.MustCompile(`: -?[0-9.]+ MB`), ": SIZE"},
}

func (term *terminal) levelled(text string) string {
	for _, own := range serversOwn {
		text = own.what.ReplaceAllString(text, own.as)
	}
	return text
}

// allKnown fails if a program has a command that is in no table.
func allKnown(t *testing.T, program string, tables ...[]command) {
	t.Helper()
	for _, name := range commandsOf(t, program) {
		has := func(c command) bool { return strings.HasPrefix(c.line+" ", name+" ") }
		if commandsElsewhere[name] == "" && !slices.ContainsFunc(slices.Concat(tables...), has) {
			t.Errorf("%s has the command %q, which is in no table", program, name)
		}
	}
}

// commandsOf returns the commands of a program that have none below them, as it completes them.
func commandsOf(t *testing.T, program string, above ...string) (names []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, slices.Concat([]string{"__complete"}, above, []string{""})...).Output()
	if err != nil {
		t.Fatalf("%s completes: %v", program, err)
	}
	for line := range strings.Lines(string(out)) {
		name, _, described := strings.Cut(strings.TrimSpace(line), "\t")
		if !described || strings.HasPrefix(name, "-") {
			continue
		}
		path := append(slices.Clone(above), name)
		if below := commandsOf(t, program, path...); name != "help" && len(below) > 0 {
			names = append(names, below...)
		} else {
			names = append(names, strings.Join(path, " "))
		}
	}
	return names
}

// written is what a program has written. It calls reached when that has a text in it.
type written struct {
	mu      sync.Mutex
	b       strings.Builder
	until   string
	reached func()
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.b.Write(p)
	if w.until != "" && strings.Contains(w.b.String(), w.until) {
		w.reached()
	}
	return n, err
}

func (w *written) has(text string) bool { return strings.Contains(w.String(), text) }

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
