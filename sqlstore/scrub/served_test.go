package scrub_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	. "github.com/plinth-io/plinth/sqlstore/scrub"
)

// notV0 is an Options.Served that knows all versions but v0.
func notV0(_ string, value []byte) error {
	if strings.Contains(string(value), `"apiVersion":"v0"`) {
		return errors.New("it is in v0")
	}
	return nil
}

// inVersion is an object of some kind.
func inVersion(key, version string) []byte {
	return fmt.Appendf(nil, `{"kind":"Thing","apiVersion":%q,"metadata":{"name":%q}}`, version, key[strings.LastIndex(key, "/")+1:])
}

// Objects in force that cannot be served are problems, in order of their revisions. What was superseded or deleted is
// none, nor is what a definition in force defines.
func TestServed(t *testing.T) {
	const (
		things     = "/registry/example.org/things/"
		others     = "/registry/example.org/others/"
		definition = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		log, last := openLog(t, dsn), map[string]int64{}
		for _, w := range []struct{ key, version string }{ // "": it is deleted
			{things + "stays", "v0"},                     // 1
			{things + "changes", "v0"},                   // 2
			{things + "goes", "v0"},                      // 3
			{things + "returns", "v0"},                   // 4
			{others + "defined", "v0"},                   // 5
			{definition + "others.example.org", "v1"},    // 6
			{definition + "things.example.org", "v1"},    // 7
			{things + "changes", "v1"},                   // 8
			{things + "goes", ""},                        // 9
			{things + "returns", ""},                     // 10
			{definition + "things.example.org", ""},      // 11
			{things + "new", "v1"},                       // 12
			{things + "returns", "v0"},                   // 13
			{"/registry/example.org/gone/defined", "v0"}, // 14
		} {
			c := changelog.Change{Key: w.key, Expect: last[w.key], Value: inVersion(w.key, cmp.Or(w.version, "v0")), Delete: w.version == ""}
			a, err := log.Append(t.Context(), []changelog.Change{c})
			if err != nil || a.Results[0].Revision == 0 {
				t.Fatalf("write %+v: %+v, %v", w, a, err)
			}
			if last[w.key] = a.Results[0].Revision; c.Delete {
				last[w.key] = 0
			}
		}
		source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		var problems []string
		r, err := Log(t.Context(), source, Options{Served: notV0, Found: func(p Problem) { problems = append(problems, p.String()) }})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"revision 1 of " + things + "stays: it is in v0",
			"revision 13 of " + things + "returns: it is in v0",
			"revision 14 of /registry/example.org/gone/defined: it is in v0",
		}
		if !slices.Equal(problems, want) || r.Problems != int64(len(want)) {
			t.Errorf("%d problems: %q, want %q", r.Problems, problems, want)
		}
		if _, problems := scrub(t, dsn); problems != nil {
			t.Errorf("nobody asked: %q", problems)
		}
	})
}

// What cannot be read any more is not judged by what was there before; and memory is bounded.
func TestServedBad(t *testing.T) {
	var problems []string
	o := Options{Served: notV0, Found: func(p Problem) { problems = append(problems, p.String()) }}
	rows := NewRows(o)
	row := func(revision int64, key string, value []byte) {
		rows.Look(t.Context(), &changelog.Row{Revision: revision, CreateRevision: 1, Key: key, Value: value})
	}
	row(1, "/registry/example.org/things/a", inVersion("a", "v0"))
	row(2, "/registry/example.org/things/a", []byte("k8s:enc:aesgcm:v1:key:"))
	row(3, "/registry/example.org/things/b", inVersion("b", "v0"))
	row(4, "/registry/example.org/things/b", []byte("{"))
	rows.Settle()
	if want := []string{"revision 4 of /registry/example.org/things/b: it is no JSON: byte 1 of 1 is wrong"}; !slices.Equal(problems, want) {
		t.Errorf("%q, want %q", problems, want)
	}

	problems, rows = nil, NewRows(o)
	for i := range int64(10_002) {
		key := fmt.Sprintf("/registry/example.org/things/%05d", i)
		row(i+1, key, inVersion(key, "v0"))
	}
	rows.Settle()
	if last := problems[len(problems)-1]; len(problems) != 10_001 || last != "more objects than 10000 cannot be served; these are not all" {
		t.Errorf("%d problems, the last: %s", len(problems), last)
	}
}
