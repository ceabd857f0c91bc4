package logtest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// EnvHA names the highly available databases that are tested, separated by commas; make test-ha sets it.
const EnvHA = "PLINTH_TEST_HA"

// WantsHA skips a test unless EnvHA names what it tests.
func WantsHA(t testing.TB, what string) {
	t.Helper()
	if !slices.Contains(strings.Split(os.Getenv(EnvHA), ","), what) {
		t.Skipf("make test-ha HA=%s runs this test", what)
	}
}

// Galera is a cluster of three nodes for one test, with a database.
type Galera struct {
	*dbserver.Galera
	database string
}

// StartGalera starts a cluster, if EnvHA names it.
func StartGalera(t testing.TB) *Galera {
	t.Helper()
	WantsHA(t, "galera")
	g, err := dbserver.StartGalera(3)
	if errors.Is(err, dbserver.ErrNotInstalled) {
		t.Fatalf("%v\ninstall the packages mariadb-server, galera-4 and rsync, or run make test-ha", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close cluster: %v", err)
		}
	})
	return &Galera{Galera: g}
}

// Fresh makes another database.
func (g *Galera) Fresh(t testing.TB) {
	t.Helper()
	g.database = databaseName()
	execMySQL(t, g.Nodes[0].DSN(""), `CREATE DATABASE `+g.database)
	for n := range g.Nodes { // which get to know of it one after the other
		for dbserver.PingMySQL(t.Context(), g.DSN(n)) != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// DSN returns the DSN of the database at some nodes, of which the first one is preferred.
func (g *Galera) DSN(nodes ...int) string {
	var hosts []string
	dsn := ""
	for _, n := range nodes {
		dsn = g.Nodes[n].DSN(g.database)
		hosts = append(hosts, hostOf(dsn))
	}
	return strings.Replace(dsn, hostOf(dsn), strings.Join(hosts, ","), 1)
}

// hostOf returns the host and port in a DSN.
func hostOf(dsn string) string {
	_, after, _ := strings.Cut(dsn, "@")
	host, _, _ := strings.Cut(after, "/")
	return host
}
