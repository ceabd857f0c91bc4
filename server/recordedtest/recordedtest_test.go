package recordedtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// failures is a test that notes its failures.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, format)
}

func TestPlay(t *testing.T) {
	exchanges, err := parse("# x\nOmitted: uid\n----\n# create\nPOST /a\n\nbody\n=> 200\n! 299 - \"w\"\n{\"a\":1}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		warning, answer string
		code, failures  int
	}{
		{`299 - "w"`, `{"a":1,"uid":"5"}`, 200, 0},
		{`299 - "w"`, `{"a":1}`, 201, 1},
		{`299 - "v"`, `{"a":1}`, 200, 1},
		{`299 - "w"`, `{"a":2}`, 200, 1},
		{`299 - "w"`, `{"a":1,"b":1}`, 200, 1},
		{`299 - "w"`, `{}`, 200, 1},
		{`299 - "w"`, `{"a":1}{}`, 200, 1},
		{`299 - "w"`, ``, 200, 1},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Warning", row.warning)
			w.WriteHeader(row.code)
			_, _ = w.Write([]byte(row.answer))
		}))
		f := &failures{TB: t}
		exchanges[0].Play(f, srv.Client(), srv.URL)
		srv.Close()
		if len(f.texts) != row.failures {
			t.Errorf("%+v: %d failures: %s", row, len(f.texts), strings.Join(f.texts, "\n"))
		}
	}
}
