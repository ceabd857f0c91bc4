package recordedtest

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const recording = `# Two requests.
Omitted: uid metadata.resourceVersion
Content-Type: application/json
Accept: application/json
----
# create
POST /things?dryRun=All
Content-Type: application/yaml
Impersonate-Group: a
Impersonate-Group: b

{"a":1}
=> 201
! 299 - "one"
! 299 - "two"
{"metadata":{"name":"x"}}
{"second":true}
----
# get
GET /things/x
=> 404
{"kind":"Status"}
`

func TestRead(t *testing.T) {
	exchanges, err := parse(recording)
	if err != nil {
		t.Fatal(err)
	}
	if len(exchanges) != 2 {
		t.Fatalf("%d exchanges, want 2", len(exchanges))
	}
	created, got := exchanges[0], exchanges[1]
	if created.Name != "create" || created.Method != "POST" || created.Path != "/things?dryRun=All" || created.Body != `{"a":1}` {
		t.Errorf("the first request is %+v", created)
	}
	want := http.Header{"Content-Type": {"application/yaml"}, "Accept": {"application/json"}, "Impersonate-Group": {"a", "b"}}
	if !reflect.DeepEqual(created.Header, want) {
		t.Errorf("headers %v, want %v", created.Header, want)
	}
	if created.Code != 201 || len(created.Warnings) != 2 || created.Warnings[1] != `299 - "two"` || len(created.Values) != 2 {
		t.Errorf("the first answer is %+v", created)
	}
	if got.Body != "" || got.Header.Get("Content-Type") != "application/json" || got.Code != 404 {
		t.Errorf("the second exchange is %+v", got)
	}
}

func TestReadRejects(t *testing.T) {
	for name, text := range map[string]string{
		"a first block that is a request": "# get\nGET /\n=> 200\n{}\n",
		"no answer":                       "# x\n----\n# get\nGET /\n",
		"no request line":                 "# x\n----\n# get\n=> 200\n{}\n",
		"a header without a colon":        "# x\n----\n# get\nGET /\nAccept\n=> 200\n{}\n",
		"a status that is no number":      "# x\n----\n# get\nGET /\n=> OK\n{}\n",
		"an answer that is cut off":       "# x\n----\n# get\nGET /\n=> 200\n{\"a\":\n",
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestRecordings reads every recording below server, so that none is lost when files move.
func TestRecordings(t *testing.T) {
	total := 0
	eachRecording(t, func(_ string, exchanges []*Exchange) { total += len(exchanges) })
	if total < 1865 {
		t.Errorf("%d recorded requests, and there were 1865", total)
	}
}

func eachRecording(t *testing.T, do func(path string, exchanges []*Exchange)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && isRecording(path) {
			do(path, Read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isRecording(path string) bool {
	if !strings.Contains(path, "testdata") || filepath.Ext(path) != ".txt" {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(text), "# ") && strings.Contains(string(text), "\n=> ")
}
