package object_test

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
	. "github.com/plinth-io/plinth/sqlstore/object"
)

func TestAttributes(t *testing.T) {
	const key = "/registry/core/pods/ns/name"
	type term = sqlstore.Term
	present := func(text string) term { return term{Is: sqlstore.Present, Text: []byte(text)} }
	unclear, lacking := term{Is: sqlstore.Unclear}, term{}
	with := func(metadata, rest string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{` + metadata + `}` + rest + `}`
	}
	for _, c := range []struct {
		attribute, value string
		want             term
	}{
		{Name(), "anything", present("name")},
		{Label("app"), with(`"labels":{"app":"a"}`, ``), present("a")},
		{Label("app"), with(`"labels":{"x":"\"","app":"a","z":""}`, ``), present("a")},
		{Label("app"), with(`"labels":{"x":"\\","app":""}`, ``), present("")},
		{Label("app"), with(`"labels":{"app":"\u00e9\n"}`, ``), present("é\n")},
		{Label("app"), with(`"annotations":{"labels":"{","app":"no"},"labels":{"app":"yes"}`, ``), present("yes")},
		{Label("app"), with(`"labels":{"application":"a"}`, ``), lacking},
		{Label("app"), with(`"labels":{}`, ``), lacking},
		{Label("app"), with(`"name":"x"`, `,"labels":{"app":"a"}`), lacking},
		{Label("app"), with(``, ``), lacking},
		{Label("app"), with(`"labels":null`, ``), unclear},
		{Label("app"), with(`"labels":{"app":null}`, ``), unclear},
		{Label("app"), with(`"labels":{"app":7}`, ``), unclear},
		{Label("app"), with(`"labels":{"\u0061pp":"a"}`, ``), unclear},
		{Label("app"), with(`"labels": {"app":"a"}`, ``), unclear},
		{Label("app"), with(`"labels":{"app":"a`, ``), unclear},
		{Label("app"), ``, unclear},
		{Label("app"), `{"kind":"Pod","meta`, unclear},
		{HasLabel("app"), with(`"labels":{"app":"a"}`, ``), term{Is: sqlstore.Present}},
		{HasLabel("app"), with(`"labels":{"b":"a"}`, ``), lacking},
		{Field("spec", "nodeName"), with(``, `,"spec":{"x":[{"nodeName":"no"},"}]"],"nodeName":"n"},"status":{}`), present("n")},
		{Field("spec", "nodeName"), with(``, `,"spec":{"x":{}}`), unclear},
		{FieldOr("", "spec", "nodeName"), with(``, `,"spec":{"x":{}}`), present("")},
		{FieldOr("", "spec", "nodeName"), with(``, `,"status":{"nodeName":"n"}`), present("")},
		{FieldOr("false", "spec", "on"), with(``, ``), present("false")},
		{FieldOr("false", "spec", "on"), with(``, `,"spec":{"on":true}`), present("true")},
		{FieldOr("0", "n"), with(``, `,"n":12`), present("12")},
		{FieldOr("0", "n"), with(``, `,"n":-12`), present("-12")},
		{FieldOr("0", "n"), with(``, `,"n":0`), present("0")},
		{FieldOr("0", "n"), with(``, `,"n":-0`), unclear},
		{FieldOr("0", "n"), with(``, `,"n":1e3`), unclear},
		{FieldOr("0", "n"), with(``, `,"n":1.5`), unclear},
		{FieldOr("0", "n"), with(``, `,"n":[1]`), unclear},
		{FieldOr("0", "n"), with(``, `,"n":null`), unclear},
		{FieldOr("0", "n"), with(``, `,"n":1234567890123456789`), unclear},
		{FieldOr("", "a", "b"), with(``, `,"a":"b"`), unclear},
	} {
		got := TermOf(c.attribute)(key, []byte(c.value))
		if got.Is != c.want.Is || string(got.Text) != string(c.want.Text) {
			t.Errorf("%q of %s: %d %q, want %d %q", c.attribute, c.value, got.Is, got.Text, c.want.Is, c.want.Text)
		}
	}
}

// FuzzAttributes reads attributes of any bytes, which must not panic.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"labels":{"app":"\"a"}},"spec":{"n":[1,{"a":"}"}]}}`))
	read := []sqlstore.TermOf{TermOf(Label("app")), TermOf(HasLabel("app")), TermOf(Field("spec", "n"))}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, term := range read {
			term("/registry/core/pods/ns/name", value)
		}
	})
}
