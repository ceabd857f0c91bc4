package logtest

import (
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestClock: after a clock that was an hour ahead, as one that was then set back, or that of another
// replica, changes are not older than those before them.
func TestClock(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // nobody else can change its rows
		}
		l := openDSN(t, db.dsn)
		before := log{l, t}.append(changelog.Change{Key: "/registry/a", Value: []byte("1")}).At
		l.Close()
		Exec(t, db.dsn, "UPDATE log SET "+map[bool]string{true: "`at` = `at`", false: "at = at"}[db.name == "mariadb"]+" + 3600000")
		again := db.open(t)
		for _, batch := range [][]changelog.Change{
			{{Key: "/registry/b", Value: []byte("1")}},
			{{Key: "/registry/c", Value: []byte("1")}, {Key: "/registry/d", Value: []byte("1")}},
		} {
			if got, least := again.append(batch...).At, before+time.Hour.Milliseconds(); got < least {
				t.Errorf("a change at %d after one at %d", got, least)
			}
		}
	})
}
