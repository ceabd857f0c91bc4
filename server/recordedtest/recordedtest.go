// Package recordedtest reads conversations that were recorded with a real kube-apiserver, so
// that tests can play the requests against plinth and compare the answers. It must not know plinth:
// the caller names the server to ask.
//
// A recording is a text of blocks with the line "----" between them. The first block is about
// the whole file: after "# " what was recorded, then "Omitted:" and the names of the fields that
// the recording leaves out, then headers that each request has unless its block says otherwise.
// Every other block is a request and, below "=> ", its answer:
//
//	# a new image
//	PATCH /api/v1/namespaces/off/pods/a1
//	Content-Type: application/strategic-merge-patch+json
//
//	{"spec":{"containers":[{"name":"main","image":"example.com/a:2"}]}}
//	=> 200
//	! 299 - "a warning"
//	{"apiVersion":"v1","kind":"Pod"}
//
// A request without a body has no empty line. After the status come the warnings and then one
// JSON value per line: the answer, or whatever else was recorded of the request, such as its
// audit events. Within strings, <time>, <uid>, <version>, <name> and <age> stand for what is
// new each time.
package recordedtest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Exchange is a request and what was recorded of its answer.
type Exchange struct {
	Name, Method, Path, Body string
	Header                   http.Header

	Code     int
	Warnings []string
	// Values are the JSON values below the status.
	Values []any

	omitted map[string]bool
}

// Answer is what a server answers.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Ask sends the request to the server at url.
func (e *Exchange) Ask(t testing.TB, client *http.Client, url string) *Answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), e.Method, url+e.Path, strings.NewReader(e.Body))
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	request.Header = e.Header.Clone()
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	return &Answer{response.StatusCode, response.Header, body}
}

// Play sends the request and fails the test unless the answer is the recorded one.
func (e *Exchange) Play(t testing.TB, client *http.Client, url string) {
	t.Helper()
	e.CheckBody(t, e.Ask(t, client, url))
}

// CheckBody is Check with the values of the answer's body.
func (e *Exchange) CheckBody(t testing.TB, a *Answer) {
	t.Helper()
	got, err := decode(bytes.NewReader(a.Body))
	if err != nil {
		t.Fatalf("%s: %v in the answer %s", e.Name, err, a.Body)
	}
	e.Check(t, a, got...)
}

// Check fails the test unless status, warnings and values are the recorded ones. The values
// are those of the answer, reduced as the recording is.
func (e *Exchange) Check(t testing.TB, a *Answer, values ...any) {
	t.Helper()
	if a.Code != e.Code {
		t.Errorf("%s: %s %s: status %d, want %d: %s", e.Name, e.Method, e.Path, a.Code, e.Code, a.Body)
	}
	if diff := compare(texts(e.Warnings), texts(a.Header.Values("Warning")), nil); diff != "" {
		t.Errorf("%s: %s %s: warnings: kube-apiserver (-), plinth (+)\n%s", e.Name, e.Method, e.Path, diff)
	}
	if diff := e.Diff(values...); diff != "" {
		t.Errorf("%s: %s %s: kube-apiserver (-), plinth (+)\n%s", e.Name, e.Method, e.Path, diff)
	}
}

// Diff tells how values differ from the recorded ones; it is empty if they do not.
func (e *Exchange) Diff(values ...any) string { return compare(e.Values, values, e.omitted) }

func texts(lines []string) (values []any) {
	for _, line := range lines {
		values = append(values, line)
	}
	return values
}
