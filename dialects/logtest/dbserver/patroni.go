package dbserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patroni is a cluster of Postgres servers, one primary and standbys, that Patroni fails over. Its
// members agree on the primary through an etcd.
type Patroni struct {
	Nodes []*Server

	etcd        *Server
	rest        []int // ports of the members' REST APIs
	synchronous bool
}

// StartPatroni starts a cluster with the programs of Debian's packages patroni, python3-etcd, etcd-server
// and postgresql, and returns when all standbys follow. synchronous makes the primary acknowledge
// only what a standby has, too.
func StartPatroni(nodes int, synchronous bool) (p *Patroni, err error) {
	p = &Patroni{synchronous: synchronous}
	if p.etcd, err = startEtcd(); err != nil {
		return nil, err
	}
	for n := range nodes { // the first one makes the database, the others copy it
		port, err := FreePort()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.rest = append(p.rest, port)
		node, err := p.start(n)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.Nodes = append(p.Nodes, node)
	}
	if err := p.AwaitStandbys(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func startEtcd() (*Server, error) {
	peers, err := FreePort()
	if err != nil {
		return nil, err
	}
	return start(kind{
		name:   "etcd",
		users:  []string{"etcd"},
		create: func(*Server) error { return nil },
		command: func(s *Server) ([]string, error) {
			program, err := find([]string{"etcd"})
			client, peer := fmt.Sprintf("http://127.0.0.1:%d", s.port), fmt.Sprintf("http://127.0.0.1:%d", peers)
			return withPidFile(s, program, "--enable-v2", "--data-dir="+filepath.Join(s.dir, "data"),
				"--listen-client-urls="+client, "--advertise-client-urls="+client,
				"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
				"--initial-cluster=default="+peer), err
		},
		dsn:  func(port int, _ string) string { return fmt.Sprintf("http://127.0.0.1:%d/health", port) },
		ping: func(ctx context.Context, url string) error { return getJSON(ctx, url, &struct{}{}) },
		stop: syscall.SIGTERM,
	})
}

// withPidFile makes a program that writes no file with its process id known to the reaper.
func withPidFile(s *Server, program string, args ...string) []string {
	return append([]string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, filepath.Join(s.dir, "server.pid"), program}, args...)
}

func (p *Patroni) start(n int) (*Server, error) {
	return start(kind{
		name:   "patroni",
		users:  []string{"postgres"},
		create: func(*Server) error { return nil },
		command: func(s *Server) ([]string, error) {
			program, err1 := find([]string{"patroni"})
			controldata, err2 := find([]string{"pg_controldata"}, postgresDirs...) // not where some have a link to postgres alone
			file := filepath.Join(s.dir, "patroni.yml")
			err3 := os.WriteFile(file, []byte(p.configuration(n, s, filepath.Dir(controldata))), 0o644)
			return withPidFile(s, program, file), errors.Join(err1, err2, err3)
		},
		dsn: func(port int, database string) string {
			return p.dsn(database, fmt.Sprintf("127.0.0.1:%d", port))
		},
		ping: PingPostgres,
		stop: syscall.SIGTERM,
	})
}

// configuration is that of a member. Its times are the shortest that Patroni takes. A standby is promoted
// however far it is behind.
//
// With the third version of etcd's API, Patroni before 3.0.3 overwrites the leader's key without a condition. An old
// primary that was stopped for long takes itself for the leader when it goes on, and then it is: what the new one has
// acknowledged is rewound. With the second version it compares.
// https://github.com/patroni/patroni/pull/2689
func (p *Patroni) configuration(n int, s *Server, programs string) string {
	return fmt.Sprintf(`
scope: plinth
name: node-%[1]d
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
etcd: {hosts: "127.0.0.1:%[3]d"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1000000000
    synchronous_mode: %[4]t
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, wal_keep_size: 256MB}
  initdb: [{encoding: UTF8}, {locale: C}, no-sync]
postgresql:
  listen: "127.0.0.1:%[5]d"
  connect_address: "127.0.0.1:%[5]d"
  bin_dir: %[6]q
  data_dir: %[7]q
  pgpass: %[8]q
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  authentication:
    superuser: {username: postgres}
    replication: {username: postgres}
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
  parameters: {unix_socket_directories: %[9]q, shared_buffers: 32MB}
`, n, p.rest[n], p.etcd.port, p.synchronous, s.port, programs, filepath.Join(s.dir, "data"), filepath.Join(s.dir, "pgpass"), s.dir)
}

func (p *Patroni) dsn(database string, hosts ...string) string {
	if database == "" {
		database = "postgres"
	}
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", strings.Join(hosts, ","), database)
}

// DSN names all members, of which plinth uses the primary.
func (p *Patroni) DSN(database string) string {
	var hosts []string
	for _, n := range p.Nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", n.port))
	}
	return p.dsn(database, hosts...)
}

// member is what Patroni says of one.
type member struct {
	Name, Role, State string
	Timeline          any
}

func (m member) standsBy() bool {
	return m.Role != "leader" && (m.State == "running" || m.State == "streaming")
}

// members asks the members whose Patroni answers.
func (p *Patroni) members() (members []member, err error) {
	err = errors.New("no member is known")
	for _, port := range p.rest {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		var cluster struct{ Members []member }
		err = getJSON(ctx, fmt.Sprintf("http://127.0.0.1:%d/cluster", port), &cluster)
		cancel()
		if err == nil {
			return cluster.Members, nil
		}
	}
	return nil, err
}

// Primary returns the number of the node that is the primary, as Patroni says.
func (p *Patroni) Primary() (int, error) {
	members, err := p.members()
	if err != nil {
		return 0, fmt.Errorf("find the primary: %w", err)
	}
	for _, m := range members {
		if m.Role == "leader" {
			return strconv.Atoi(strings.TrimPrefix(m.Name, "node-"))
		}
	}
	return 0, errors.New("find the primary: there is none")
}

// AwaitStandbys waits until all members but one follow the one, and if the cluster is synchronous one of
// them acknowledges what the primary does.
func (p *Patroni) AwaitStandbys() error {
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		members, err := p.members()
		if err == nil && p.complete(members) {
			return nil
		}
		if time.Since(begun) > startTimeout {
			return fmt.Errorf("wait for all standbys: %+v, %w", members, errors.Join(err, context.DeadlineExceeded))
		}
	}
}

func (p *Patroni) complete(members []member) bool {
	leaders, standbys, synchronous := 0, 0, !p.synchronous
	for _, m := range members {
		switch {
		case m.Role == "leader" && m.State == "running":
			leaders++
		case m.standsBy() && p.streams(m):
			standbys++
		}
		synchronous = synchronous || m.Role == "sync_standby"
	}
	return leaders == 1 && standbys == len(p.rest)-1 && synchronous
}

// streams says whether a standby receives what the primary writes now: Patroni 3 does not tell.
func (p *Patroni) streams(m member) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(m.Name, "node-"))
	if err != nil || n >= len(p.Nodes) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return queryOne(ctx, p.Nodes[n].DSN(""), `SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'`) == 1
}

// Switchover has Patroni make another node the primary, without loss.
func (p *Patroni) Switchover(from, to int) error {
	body := fmt.Sprintf(`{"leader": "node-%d", "candidate": "node-%d"}`, from, to)
	r, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/switchover", p.rest[from]), "application/json", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("switch over: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", r.Status, text)
	}
	if err != nil {
		return fmt.Errorf("switch over: %w", err)
	}
	return nil
}

// Hold stops the processes of a primary that send to standbys, so that these fall behind, while a primary
// that is asynchronous goes on.
func (p *Patroni) Hold(n int) error {
	pids, err := postmaster(p.Nodes[n])
	if err != nil {
		return err
	}
	held := 0
	for _, pid := range pids {
		title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !strings.Contains(string(title), "walsender") {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("hold back the standbys: %w", err)
		}
		held++
	}
	if held == 0 {
		return errors.New("hold back the standbys: nothing is sent to any")
	}
	return nil
}

// Kill ends a node as a machine does that loses its power: Patroni, Postgres, and what is on its way.
func (p *Patroni) Kill(n int) error {
	s := p.Nodes[n]
	pids, err := postmaster(s)
	s.Kill() // first, since it would start Postgres again
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range pids {
		awaitState(pid, "ZX")
	}
	return err
}

// Freeze stops all processes of a node where they stand. What connects to it gets no answer.
func (p *Patroni) Freeze(n int) error {
	for range 2 { // Postgres may have made another child before it stopped
		if err := p.signal(n, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	return nil
}

// Thaw lets a frozen node go on as if nothing had been.
func (p *Patroni) Thaw(n int) error { return p.signal(n, syscall.SIGCONT) }

func (p *Patroni) signal(n int, sig syscall.Signal) error {
	patroni, err := p.Nodes[n].signalAll(sig)
	if err != nil {
		return err
	}
	pids, err := postmaster(p.Nodes[n])
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal a process of postgres: %w", err)
		}
	}
	if sig != syscall.SIGSTOP {
		return nil
	}
	for _, pid := range append(patroni, pids...) {
		awaitState(pid, "TZ")
	}
	return nil
}

// postmaster returns the processes of the Postgres that a node's Patroni has started, its first one first:
// it is no child of Patroni.
func postmaster(s *Server) ([]int, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, fmt.Errorf("find the processes of postgres: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return nil, fmt.Errorf("find the processes of postgres: %w", err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return nil, fmt.Errorf("find the processes of postgres: %w", err)
	}
	pids := []int{pid}
	for _, field := range strings.Fields(string(children)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// Log returns what the members have logged last, for a test that has failed.
func (p *Patroni) Log() string {
	var all strings.Builder
	for n, s := range p.Nodes {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&all, "node-%d:\n%s\n", n, strings.Join(lines[max(0, len(lines)-400):], "\n"))
	}
	return all.String()
}

// Close ends all and removes everything they have written.
func (p *Patroni) Close() (err error) {
	for _, n := range p.Nodes {
		err = errors.Join(err, n.Close())
	}
	return errors.Join(err, p.etcd.Close())
}

// getJSON reads the answer of an HTTP server.
func getJSON(ctx context.Context, url string, into any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, r.Status)
	}
	return json.NewDecoder(r.Body).Decode(into)
}
