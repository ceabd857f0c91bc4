package logtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The first to open a database says what it is for, and nobody else can.
func TestKind(t *testing.T) {
	for kind, command := range map[changelog.Kind]string{changelog.KindAPI: "plinth serve", changelog.KindEtcd: "plinth etcd"} {
		t.Run(string(kind), func(t *testing.T) {
			Each(t, func(t *testing.T, d Dialect) {
				dsn := d.Fresh(t)
				for range 2 {
					l, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: kind})
					if err != nil {
						t.Fatal(err)
					}
					if l.Kind() != kind {
						t.Errorf("opened as %q", l.Kind())
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}
				s, err := dialects.Inspect(t.Context(), dsn, dialects.Options{})
				if err != nil || s.Kind != kind {
					t.Errorf("inspect: %q, %v", s.Kind, err)
				}
				other := changelog.KindEtcd
				if kind == other {
					other = ""
				}
				_, err = dialects.Open(t.Context(), dsn, dialects.Options{Kind: other})
				if !errors.Is(err, changelog.ErrKind) || !errors.Is(err, dialects.ErrDSN) || errors.Is(err, changelog.ErrUnavailable) ||
					!strings.Contains(err.Error(), command) || strings.Contains(err.Error(), "\n") {
					t.Errorf("open as %q: %v", other, err)
				}
			})
		})
	}
}

// Of processes that open a new database for different uses at once, one kind wins.
func TestKindRace(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		openDSN(t, db.dsn).Close()
		db.exec(t, `DELETE FROM meta WHERE name = 'kind'`)
		won := make(chan changelog.Kind)
		kinds := []changelog.Kind{changelog.KindAPI, changelog.KindEtcd, changelog.KindAPI, changelog.KindEtcd}
		for _, kind := range kinds {
			go func() {
				l, err := dialects.Open(t.Context(), db.dsn, dialects.Options{Kind: kind})
				if err == nil {
					l.Close()
				} else if kind = ""; !errors.Is(err, changelog.ErrKind) {
					t.Errorf("open: %v", err)
				}
				won <- kind
			}()
		}
		count := map[changelog.Kind]int{}
		for range kinds {
			count[<-won]++
		}
		if count[""] != 2 || count[changelog.KindAPI]*count[changelog.KindEtcd] != 0 {
			t.Errorf("opened as %v", count)
		}
	})
}

// Each kind of log is written in its own way.
func TestKindOfWrites(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		objects := db.open(t)
		err := objects.Transact(t.Context(), changelog.Ask{}, func(*changelog.Found) (d changelog.Decision, err error) {
			t.Error("decide was called")
			return d, nil
		})
		if !errors.Is(err, changelog.ErrKind) {
			t.Errorf("transact on objects: %v", err)
		}
	})
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		_, err := l.Append(t.Context(), []changelog.Change{{Key: "/registry/a", Value: []byte("a")}})
		if !errors.Is(err, changelog.ErrKind) {
			t.Errorf("append of raw keys: %v", err)
		}
		if a := l.append(); a.Head != 0 {
			t.Errorf("empty batch: %+v", a)
		}
	})
}
