package logtest

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestHosts has two servers in a DSN. The one that takes writes is used, and when it stops the other one.
func TestHosts(t *testing.T) {
	a, b := StartMariaDB(t), StartMariaDB(t)
	dsn := CreateDatabase(t, a)
	Exec(t, b.DSN(""), "CREATE DATABASE "+dsn[strings.LastIndexByte(dsn, '/')+1:])
	hosts := strings.Replace(dsn, hostOf(dsn), hostOf(a.DSN(""))+","+hostOf(b.DSN("")), 1)
	open := func(dsn string) log {
		l := log{openDSN(t, dsn), t}
		t.Cleanup(func() { l.Close() })
		return l
	}
	second := open(strings.Replace(dsn, hostOf(dsn), hostOf(b.DSN("")), 1))
	l := open(hosts)
	l.put("/registry/first", 0, "x")
	Exec(t, a.DSN(""), `SET GLOBAL read_only = ON`)
	if id := open(hosts).ClusterID(); id != second.ClusterID() {
		t.Error("a server that is read-only was used, and another takes writes")
	}
	a.Stop()
	if a, err := l.Append(t.Context(), []changelog.Change{{Key: "/registry/second", Value: []byte("x")}}); err != nil || a.Results[0].Revision != 1 {
		t.Errorf("append at the other server: %+v, %v", a, err)
	}
	if rows := second.rows(); len(rows) != 1 {
		t.Errorf("the other server has %d rows", len(rows))
	}
}
