package etcdtest_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// secondsVariable says how long the load of TestRobust lasts; make test-etcd asks for more.
const secondsVariable = "PLINTH_TEST_ETCD_SECONDS"

// TestRobust has clients work as Kubernetes does, while members are killed, the database is killed or hangs,
// and connections are slow, hang, or are cut. What the clients saw must be what one key space that
// never fails could have shown them.
func TestRobust(t *testing.T) {
	seed := fromEnvironment(t, seedVariable, 1)
	seconds := fromEnvironment(t, secondsVariable, 11)
	for _, s := range []struct {
		name    string
		members int
		start   func(testing.TB) *dbserver.Server
	}{{"sqlite", 1, nil}, {"postgres", 3, logtest.StartPostgres}, {"mariadb", 2, logtest.StartMariaDB}} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, s.members, s.start)
			c.run(t, seed, time.Duration(seconds)*time.Second)
		})
	}
}

// cluster is members that share a database.
type cluster struct {
	server  *dbserver.Server // nil for SQLite
	members []*member
	long    bool // outages may last longer
}

func startCluster(t *testing.T, members int, start func(testing.TB) *dbserver.Server) *cluster {
	t.Helper()
	c := &cluster{}
	dsn := ""
	if start == nil {
		dsn = logtest.SQLite(t)
	} else {
		c.server = start(t)
		dsn = logtest.CreateDatabase(t, c.server)
	}
	for i := range members {
		m := &member{dsn: dsn, clients: newWay(t, ""), tight: i%2 == 1}
		if c.server != nil {
			m.reachThrough(t)
		}
		t.Cleanup(m.kill)
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
		c.members = append(c.members, m)
	}
	return c
}

// reachThrough puts a way between the member and its database.
func (m *member) reachThrough(t *testing.T) {
	t.Helper()
	u, err := url.Parse(m.dsn)
	if err != nil {
		t.Fatal(err)
	}
	m.database = newWay(t, u.Host)
	u.Host = m.database.Address()
	m.dsn = u.String()
}

// run plays the load through faults, and judges what clients saw.
func (c *cluster) run(t *testing.T, seed uint64, lasts time.Duration) {
	c.long = lasts >= time.Minute
	load := &etcdtest.Load{Clients: 6, Seed: seed}
	for _, m := range c.members {
		load.Members = append(load.Members, m.clients.Address())
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts+3*etcdtest.Patience)
	defer cancel()
	stop, end := context.WithCancel(ctx)
	defer end()
	type result struct {
		history *etcdtest.History
		err     error
	}
	ended := make(chan result, 1)
	go func() {
		h, err := load.Run(ctx, stop)
		ended <- result{h, err}
	}()
	count, err := c.fail(seed, time.Now().Add(lasts), load.Proves)
	end()
	r := <-ended
	t.Logf("faults: %v", count)
	if count["kill a member"] == 0 {
		t.Error("no member was killed")
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.err != nil {
		t.Error(r.err)
	}
	if !load.Proves() {
		t.Error("too few calls wrote, or no lease was granted, to prove anything")
	}
	c.judge(t, seed, r.history)
}

// judge fails the test if the history has faults.
func (c *cluster) judge(t *testing.T, seed uint64, h *etcdtest.History) {
	answered, unknown, wrote := 0, 0, 0
	for i := range h.Calls {
		switch call := &h.Calls[i]; {
		case call.Error != "":
			unknown++
		case call.Writes() && call.Succeeded:
			wrote++
			fallthrough
		default:
			answered++
		}
	}
	begun := time.Now()
	v := etcdtest.Check(h)
	t.Logf("seed %d: %d calls answered, %d not, %d wrote, %d leases; checked in %v", seed, answered, unknown, wrote, len(h.Leases), time.Since(begun))
	if len(v.Faults) == 0 && !t.Failed() {
		return
	}
	for _, fault := range v.Faults[:min(len(v.Faults), 10)] {
		t.Errorf("%.2000s", fault)
	}
	paths, err := v.Save(keptDir(t))
	t.Logf("the history, and drawings of keys that are to blame: %s %v", strings.Join(paths, " "), err)
	for i, m := range c.members {
		m.kill()
		log := m.log.String()
		t.Logf("log of member %d:\n%s", i, log[max(0, len(log)-5000):])
	}
}

// keptDir is where files of a test that failed stay.
func keptDir(t *testing.T) string {
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return t.ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "plinth-history-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// fail makes faults of all kinds, one after the other, and counts them. At the end all is well. It goes on
// until the time is over and, because one fault can last that long on a machine that is busy, until a
// member was killed and the load proves something.
func (c *cluster) fail(seed uint64, end time.Time, proves func() bool) (map[string]int, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	count := map[string]int{}
	goOn := func() bool {
		now := time.Now()
		return now.Before(end) || now.Before(end.Add(etcdtest.Patience)) && (count["kill a member"] == 0 || !proves())
	}
	for goOn() {
		outages := c.outages(c.members[r.IntN(len(c.members))], r)
		names := slices.Sorted(maps.Keys(outages))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		// Even a short run has kills.
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
		for _, name := range names {
			wait(r, 200, 600)
			if !goOn() {
				break
			}
			if err := outages[name](); err != nil {
				return count, fmt.Errorf("%s: %w", name, err)
			}
			count[name]++
		}
	}
	return count, nil
}

func rank(name string) int {
	if strings.HasPrefix(name, "kill") {
		return 0
	}
	return 1
}

// outages returns what can happen to a member and to the database. Each is over when it returns.
func (c *cluster) outages(m *member, r *rand.Rand) map[string]func() error {
	all := map[string]func() error{
		"kill a member": func() error {
			m.kill()
			wait(r, 0, 500)
			return m.start()
		},
		"cut clients off": func() error { m.clients.Cut(); return nil },
		"lose what a member answers": func() error {
			m.clients.Lose(time.Duration(20+r.IntN(200)) * time.Millisecond)
			return nil
		},
		"delay clients": func() error {
			m.clients.Slow(time.Duration(1+r.IntN(30)) * time.Millisecond)
			wait(r, 300, 800)
			m.clients.Slow(0)
			return nil
		},
		"block clients, then cut them off": func() error {
			m.clients.Block()
			wait(r, 100, 500)
			m.clients.Cut()
			m.clients.Unblock()
			return nil
		},
	}
	if c.server == nil {
		return all
	}
	all["kill the database"] = func() error {
		c.server.Kill()
		wait(r, 0, 500)
		return c.server.Start()
	}
	all["stop the database"] = func() error {
		c.server.Stop()
		return c.server.Start()
	}
	all["freeze the database"] = func() error {
		if err := c.server.Freeze(); err != nil {
			return err
		}
		wait(r, 300, 1500)
		if c.long && r.IntN(3) == 0 {
			wait(r, 4000, 20000) // longer than plinth waits for an answer
		}
		return c.server.Thaw()
	}
	all["cut a member off the database"] = func() error { m.database.Cut(); return nil }
	all["lose what the database answers"] = func() error { // so that it is not known what was committed
		for range 5 {
			m.database.Lose(time.Duration(20+r.IntN(100)) * time.Millisecond)
			wait(r, 50, 150)
		}
		return nil
	}
	all["delay a member's database"] = func() error {
		m.database.Slow(time.Duration(1+r.IntN(20)) * time.Millisecond)
		wait(r, 300, 1000)
		m.database.Slow(0)
		return nil
	}
	all["block a member's database, then cut it off"] = func() error {
		m.database.Block()
		wait(r, 100, 1000)
		m.database.Cut()
		m.database.Unblock()
		return nil
	}
	return all
}

// wait waits for a random number of milliseconds.
func wait(r *rand.Rand, least, most int) {
	time.Sleep(time.Duration(least+r.IntN(most-least)) * time.Millisecond)
}
