// Package recordedtest reads conversations that were recorded with a real kube-apiserver, so
// that tests can play the requests against plinth and compare the answers. It must not know plinth:
// the caller names the server to ask. For make record it starts a kube-apiserver instead, and the
// tests write down what that answers.
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
	"time"
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

// Ask sends the request to the server at url. While a kube-apiserver's answers are recorded, it sends
// one whose name begins with "wait" until the answer is the recorded one, but not for long.
func (e *Exchange) Ask(t testing.TB, client *http.Client, url string) *Answer {
	t.Helper()
	begun := time.Now()
	for {
		if a := e.ask(t, client, url); !e.again(a, begun) {
			return a
		}
	}
}

func (e *Exchange) ask(t testing.TB, client *http.Client, url string) *Answer {
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
// are those of the answer, reduced as the recording is. While recordings are made, they become what is recorded.
func (e *Exchange) Check(t testing.TB, a *Answer, values ...any) {
	t.Helper()
	e.CheckCode(t, a)
	e.checkWarnings(t, a)
	e.CheckValues(t, values...)
}

// CheckCode is Check of the status alone.
func (e *Exchange) CheckCode(t testing.TB, a *Answer) {
	t.Helper()
	if record != "" {
		e.Code = a.Code
	}
	if a.Code != e.Code {
		t.Errorf("%s: %s %s: status %d, want %d: %s", e.Name, e.Method, e.Path, a.Code, e.Code, a.Body)
	}
}

func (e *Exchange) checkWarnings(t testing.TB, a *Answer) {
	t.Helper()
	if record != "" {
		e.keepWarnings(a.Header.Values("Warning"))
	}
	if diff := compare(texts(e.Warnings), texts(a.Header.Values("Warning")), nil); diff != "" {
		t.Errorf("%s: %s %s: warnings: kube-apiserver (-), plinth (+)\n%s", e.Name, e.Method, e.Path, diff)
	}
}

// CheckValues is Check of the values alone.
func (e *Exchange) CheckValues(t testing.TB, values ...any) {
	t.Helper()
	if record != "" {
		e.keepValues(values)
	}
	if diff := e.diff(values...); diff != "" {
		t.Errorf("%s: %s %s: kube-apiserver (-), plinth (+)\n%s", e.Name, e.Method, e.Path, diff)
	}
}

// diff tells how values differ from the recorded ones; it is empty if they do not.
func (e *Exchange) diff(values ...any) string { return compare(e.Values, values, e.omitted) }

func texts(lines []string) (values []any) {
	for _, line := range lines {
		values = append(values, line)
	}
	return values
}
