package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// by commits an object whose change has an origin.
func by(t *testing.T, s *Store, name string, o *Origin) error {
	t.Helper()
	_, err := s.Commit(WithOrigin(t.Context(), o), Change{Key: maps + "ns/" + name, Value: []byte(`{"metadata":{"name":"x"}}`)})
	return err
}

func authorsOf(t *testing.T, s *Store) map[Author]int64 {
	t.Helper()
	all, err := LogOf(s).Authors(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAuthorsAreBounded has a client that names another manager each time. After a while they are not
// noted any more, and other authors still are.
func TestAuthorsAreBounded(t *testing.T) {
	s := newStore(t, Options{})
	s.BoundAuthors(10)
	for i := range 100 {
		if err := by(t, s, fmt.Sprint("a", i), &Origin{Author: Author{User: "jane", Verb: "create", Manager: fmt.Sprint("m", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := by(t, s, "b", &Origin{Author: Author{User: "bob", Verb: "create", Manager: "m"}}); err != nil {
		t.Fatal(err)
	}
	all := authorsOf(t, s)
	if len(all) != 12 || all[Author{User: "jane", Verb: "create"}] == 0 || all[Author{User: "bob", Verb: "create"}] == 0 {
		t.Errorf("%d authors: %v", len(all), all)
	}
}

// authorlessLog cannot add authors.
type authorlessLog struct {
	Log
	err error
}

func (l *authorlessLog) AddAuthors(ctx context.Context, a []Author) ([]int64, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.Log.AddAuthors(ctx, a)
}

// TestAuthorsFail: a change whose author cannot be noted is not written, and its caller learns that
// nothing was, whatever became of the author.
func TestAuthorsFail(t *testing.T) {
	log := &authorlessLog{Log: openLog(t, fileDSN(t)), err: fmt.Errorf("lost: %w", ErrUnknown)}
	s, err := object.Open(t.Context(), log, Options{History: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &Origin{Author: Author{User: "jane", Verb: "create"}}
	if err := by(t, s, "a", o); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if e := s.Get(maps + "ns/a"); e != nil {
		t.Error("the change was written")
	}
	log.err = nil
	if err := by(t, s, "a", o); err != nil {
		t.Error(err)
	}
	want := map[Author]int64{o.Author: 1}
	if diff := cmp.Diff(want, authorsOf(t, s)); diff != "" {
		t.Errorf("authors (-want +got):\n%s", diff)
	}
}
