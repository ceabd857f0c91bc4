package object

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzBadAt compares with encoding/json.
func FuzzBadAt(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `{ }`, ` [ ] `, `{"a":1}`, `{"a":[1,2,{"b":null}],"c":"d"}`, `{"a":1,}`, `{,}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{a:1}`,
		`"`, `""`, `"a`, `"\"`, `"\\"`, `"\u00e9"`, `"\u00g9"`, `"\u00E"`, `"\x"`, "\"\n\"", "\"\x00\"", "\"\x7f\xff\"", `"12345678"`, `"1234567\"9"`, "\"1234567\x1f\"",
		`0`, `-0`, `01`, `-`, `1.`, `.1`, `1.5e+10`, `1e`, `1e-`, `1E5`, `+1`, `true`, `tru`, `truex`, `false`, `null`, `nul`, `{}{}`, `{} x`, `[}`, `{]`, `{"a":1]`,
		`{bad`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}`, strings.Repeat("[", 20), strings.Repeat("[", 70) + strings.Repeat("]", 70), "{\"a\": 1 ,\r\n\t\"b\" : [ 1 , 2 ] }",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := badAt(b) < 0, json.Valid(b); got != want {
			t.Errorf("%q: %v, want %v", b, got, want)
		}
	})
}

// Brackets are nested as deep as encoding/json has it, and no deeper.
func TestBadAtDepth(t *testing.T) {
	for _, depth := range []int{maxDepth, maxDepth + 1} {
		text := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		if got, want := badAt(text) < 0, json.Valid(text); got != want {
			t.Errorf("depth %d: %v, want %v", depth, got, want)
		}
	}
}
