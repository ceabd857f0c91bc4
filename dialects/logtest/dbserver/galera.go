package dbserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var galeraLibraries = []string{"/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib64/galera", "/usr/lib/galera-4"}

// Galera is a cluster of MariaDB servers, of which each takes writes. A node that was stopped or killed
// and is started again joins the others.
type Galera struct {
	Nodes []*Server

	provider string
	group    []int // ports of the nodes' conversations
	made     bool  // there is a cluster to join
}

// StartGalera starts a cluster of nodes, with the libraries and scripts of Debian's packages galera-4,
// mariadb-server and rsync. Only the node that is first makes a database; the others get theirs by a
// state transfer.
func StartGalera(nodes int) (g *Galera, err error) {
	g = &Galera{}
	if g.provider, err = find([]string{"libgalera_smm.so"}, galeraLibraries...); err != nil {
		return nil, err
	}
	for range nodes {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		g.group = append(g.group, port)
	}
	first, err := g.start(0)
	if err != nil {
		return nil, err
	}
	g.Nodes, g.made = append(g.Nodes, first), true
	for n := 1; n < nodes; n++ {
		node, err := g.start(n)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g, nil
}

func (g *Galera) start(n int) (*Server, error) {
	return start(kind{
		name:    "galera",
		users:   []string{"mysql"},
		create:  createMariaDB,
		command: func(s *Server) ([]string, error) { return g.command(s, n) },
		dsn: func(port int, database string) string {
			if database == "" {
				database = "mysql"
			}
			return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", port, database)
		},
		ping: pingGalera,
		stop: syscall.SIGTERM,
	})
}

func (g *Galera) command(s *Server, n int) ([]string, error) {
	program, err := find([]string{"mariadbd", "mysqld"}, mysqlDirs...)
	if err != nil {
		return nil, err
	}
	ist, err1 := FreePort()
	sst, err2 := FreePort()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	args := []string{program, "--no-defaults",
		"--datadir=" + filepath.Join(s.dir, "data"),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.port),
		"--socket=" + filepath.Join(s.dir, "socket"),
		"--pid-file=" + filepath.Join(s.dir, "server.pid"),
		"--skip-name-resolve", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M",
		"--innodb-flush-log-at-trx-commit=2", "--innodb-autoinc-lock-mode=2",
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--binlog-format=ROW",
		"--wsrep-on=ON", "--wsrep-provider=" + g.provider,
		"--wsrep-cluster-name=plinth", "--wsrep-node-name=node-" + strconv.Itoa(n),
		"--wsrep-node-address=127.0.0.1",
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address=127.0.0.1:" + strconv.Itoa(sst),
		"--wsrep-slave-threads=4",
		fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;ist.recv_addr=127.0.0.1:%d;gcache.size=64M;pc.recovery=false", g.group[n], ist),
	}
	if !g.made {
		return append(args, "--wsrep-cluster-address=gcomm://"), nil
	}
	var addresses []string
	for _, port := range g.group {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	args = append(args, "--wsrep-cluster-address=gcomm://"+strings.Join(addresses, ","))
	position, err := recovered(s, args)
	if position != "" {
		args = append(args, "--wsrep-start-position="+position)
	}
	return args, err
}

var recoveredPosition = regexp.MustCompile(`Recovered position:? *([0-9a-f-]+:[0-9]+)`)

// recovered returns where a node that was killed has stopped in the order of changes, so that it gets
// what came after, and not everything: with rsync, the node that sends everything takes no writes meanwhile.
func recovered(s *Server, args []string) (string, error) {
	state, err := os.ReadFile(filepath.Join(s.dir, "data", "grastate.dat"))
	if errors.Is(err, os.ErrNotExist) || err == nil && !bytes.Contains(state, []byte("seqno:   -1")) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	out, err := s.prepared(args[0], append(args[1:len(args):len(args)], "--wsrep-recover")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --wsrep-recover: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	found := recoveredPosition.FindSubmatch(out)
	if found == nil {
		return "", nil
	}
	return string(found[1]), nil
}

// pingGalera succeeds when a node has all that the cluster had when it joined.
func pingGalera(ctx context.Context, dsn string) error {
	state, _, err := galeraState(ctx, dsn)
	if err == nil && state != "Synced" {
		err = fmt.Errorf("the node is %s", state)
	}
	return err
}

// galeraState returns what a node says of itself, and how many nodes it sees, itself included.
func galeraState(ctx context.Context, dsn string) (state string, nodes int, err error) {
	db, err := OpenMySQL(dsn)
	if err != nil {
		return "", 0, err
	}
	defer db.Close()
	var name string
	if err = db.QueryRowContext(ctx, `SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'`).Scan(&name, &state); err == nil {
		err = db.QueryRowContext(ctx, `SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'`).Scan(&name, &nodes)
	}
	return state, nodes, err
}

// whole waits until every node sees all others. A node that has just been thawed sees them for a moment
// although they have given it up, but then they don't see it.
func (g *Galera) whole() error {
	return await(nil, func(ctx context.Context) (err error) {
		for _, node := range g.Nodes {
			state, nodes, e := galeraState(ctx, node.DSN(""))
			if e == nil && (state != "Synced" || nodes != len(g.Nodes)) {
				e = fmt.Errorf("the node on port %d is %s and sees %d nodes", node.port, state, nodes)
			}
			err = errors.Join(err, e)
		}
		return err
	})
}

// InTurn are the nodes of a cluster as one server, of which each fault meets the next node. The others go on.
type InTurn struct {
	Cluster *Galera
	next    int
}

func (t *InTurn) node() *Server { return t.Cluster.Nodes[t.next%len(t.Cluster.Nodes)] }

// Kill ends a node as a crash of its machine does.
func (t *InTurn) Kill() { t.node().Kill() }

// Start starts the node that Kill has ended, and waits until it has joined the others.
func (t *InTurn) Start() error {
	defer func() { t.next++ }()
	if err := t.node().Start(); err != nil {
		return err
	}
	return t.Cluster.whole()
}

// Freeze stops a node, which the others give up if it lasts.
func (t *InTurn) Freeze() error { return t.node().Freeze() }

// Thaw has the node that Freeze has stopped go on, and waits until it has joined the others again. If the next node died
// before, there would be no majority, and none of them would go on without a person.
func (t *InTurn) Thaw() error {
	defer func() { t.next++ }()
	if err := t.node().Thaw(); err != nil {
		return err
	}
	return t.Cluster.whole()
}

// Close ends all nodes.
func (g *Galera) Close() error {
	errs := make([]error, len(g.Nodes))
	var closing sync.WaitGroup
	for i, node := range g.Nodes {
		closing.Go(func() { errs[i] = node.Close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}
