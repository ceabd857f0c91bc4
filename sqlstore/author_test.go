package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// by commits an object whose change has an origin.
func by(t *testing.T, s *Store, name string, o *changelog.Origin) error {
	t.Helper()
	_, err := s.Commit(WithOrigin(t.Context(), o), Change{Key: maps + "ns/" + name, Value: []byte(`{"metadata":{"name":"x"}}`)})
	return err
}

func authorsOf(t *testing.T, s *Store) map[changelog.Author]int64 {
	t.Helper()
	all, err := LogOf(s).Authors(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAuthorsAreBounded has users who name another manager each time. After a while theirs are
// not noted any more for an hour, and those of others still are.
func TestAuthorsAreBounded(t *testing.T) {
	s := newStore(t, Options{})
	s.BoundAuthors(40) // 4 of one user, and 1 at least
	named := 0
	name := func(impersonator, user, manager string) {
		t.Helper()
		named++
		a := changelog.Author{User: user, Impersonator: impersonator, Verb: "create", Manager: manager}
		if err := by(t, s, fmt.Sprint("a", named), &changelog.Origin{Author: a}); err != nil {
			t.Fatal(err)
		}
	}
	noted := func(user string) (managers int) {
		t.Helper()
		for a := range authorsOf(t, s) {
			if (a.User == user || a.Impersonator == user || strings.HasPrefix(a.User, user+":")) && a.Manager != "" {
				managers++
			}
		}
		return managers
	}
	want := func(when string, counts map[string]int) {
		t.Helper()
		for user, n := range counts {
			if got := noted(user); got != n {
				t.Errorf("%s: %d managers of %s, want %d", when, got, user, n)
			}
		}
	}
	for i := range 12 {
		name("", "jane", fmt.Sprint("m", i))
		name("deputy", fmt.Sprint("become-", i), "m")
		name("", fmt.Sprint("system:serviceaccount:team:", i), "m")
	}
	name("", "bob", "m")
	want("of one user", map[string]int{"jane": 4, "deputy": 4, "system:serviceaccount:team": 4, "bob": 1})
	for i := range 12 {
		for j := range 4 {
			name("", fmt.Sprint("user-", i), fmt.Sprint("m", j))
		}
	}
	name("", "late", "m")
	name("", "late", "n")
	want("of all", map[string]int{"user-0": 4, "user-11": 1, "late": 1, "jane": 4})
	if authorsOf(t, s)[changelog.Author{User: "late", Verb: "create"}] == 0 {
		t.Error("a user without managers left is not noted")
	}
	s.AgeAuthors(2 * time.Hour)
	name("", "jane", "again")
	name("", "late", "again")
	want("after an hour", map[string]int{"jane": 5, "late": 2})
}

// authorlessLog cannot add authors.
type authorlessLog struct {
	changelog.Log
	err error
}

func (l *authorlessLog) AddAuthors(ctx context.Context, a []changelog.Author) ([]int64, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.Log.AddAuthors(ctx, a)
}

// TestAuthorsFail: a change whose author cannot be noted is not written, and its caller learns that
// nothing was, whatever became of the author.
func TestAuthorsFail(t *testing.T) {
	log := &authorlessLog{Log: openLog(t, fileDSN(t)), err: fmt.Errorf("lost: %w", changelog.ErrUnknown)}
	s, err := object.Open(t.Context(), log, Options{History: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &changelog.Origin{Author: changelog.Author{User: "jane", Verb: "create"}}
	if err := by(t, s, "a", o); !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if e := s.Get(maps + "ns/a"); e != nil {
		t.Error("the change was written")
	}
	log.err = nil
	if err := by(t, s, "a", o); err != nil {
		t.Error(err)
	}
	want := map[changelog.Author]int64{o.Author: 1}
	if diff := cmp.Diff(want, authorsOf(t, s)); diff != "" {
		t.Errorf("authors (-want +got):\n%s", diff)
	}
}
