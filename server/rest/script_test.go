package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// A script is a conversation with the API: a line for each request, and below it lines about the
// answer:
//
//	METHOD path [Header:value ...] [body]
//	code Kind field.path=value field.path=* field.path= name:=field.path
//	code Reason: the exact message
//	warning: text, or nothing for none
//	details: field.path=value ... of the Status
//
// A path without a leading slash is relative to the script's own namespace. NS stands for the name
// of that namespace, ${name} for a field that name:=field.path kept from an earlier answer. A value
// is JSON, or plain text without spaces; * stands for any value, and no value means that the field
// is absent. PATCH sends a merge patch unless a header says otherwise.
//
// Requests that are refused or ask for a dry run must not write anything, except those with
// "stored" behind the kind. WATCH is followed by all events since the beginning of the script, as
// "TYPE field.path=value ...".
type script struct {
	*harness
	ns    string
	start int64
	vars  map[string]string

	// of the last request
	before int64 // the head of the log
	dry    bool
}

// namedScript is one row of a table.
type namedScript struct{ name, text string }

// The objects that many scripts create. The pods run on a node or have none, and held pods have a
// finalizer.
const (
	aDeployment = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

	onNode = `{"metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	pod    = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	heldOn = `{"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	held   = `{"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"containers":[{"name":"c","image":"i"}]}}`
)

// playAll runs each row in a namespace of its own.
func (h *harness) playAll(t *testing.T, rows []namedScript) {
	h.do("POST", configMaps, configMap("first", "1")).want(201) // a watch from version 0 begins with the present state
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			h := *h
			h.t = t
			s := &script{harness: &h, ns: fmt.Sprintf("row-%d", i), start: h.store.Revision(), vars: map[string]string{}}
			s.play(row.text)
		})
	}
}

// playEach plays the rows on each dialect. See away for from.
func playEach(t *testing.T, from away, rows []namedScript) {
	onEachDialect(t, from, rest.Options{}, func(t *testing.T, h *harness) { h.playAll(t, rows) })
}

func (s *script) play(text string) {
	s.t.Helper()
	var a answer
	var events []string
	for _, line := range strings.Split(text, "\n") {
		line = s.fill(strings.TrimSpace(line))
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "":
		case "GET", "POST", "PUT", "PATCH", "DELETE":
			s.noMore(events)
			events = nil
			a = s.request(first, rest)
		case "WATCH":
			s.noMore(events)
			events = s.watched(rest)
		case "ADDED", "MODIFIED", "DELETED":
			if len(events) == 0 {
				s.t.Fatalf("no event for %q", line)
			}
			s.event(events[0], first, rest)
			events = events[1:]
		case "warning:":
			s.warned(a, rest)
		case "details:":
			s.fields(answer{t: s.t, body: a.get("details")}, rest)
		default:
			s.check(a, first, rest)
		}
	}
	s.noMore(events)
}

func (s *script) noMore(events []string) {
	s.t.Helper()
	if len(events) > 0 {
		s.t.Fatalf("unexpected events:\n%s", strings.Join(events, "\n"))
	}
}

var variable = regexp.MustCompile(`\$\{\w+\}`)

func (s *script) fill(line string) string {
	line = variable.ReplaceAllStringFunc(line, func(name string) string { return s.vars[name[2:len(name)-1]] })
	return strings.ReplaceAll(line, "NS", s.ns)
}

// groups of the resources that scripts name without a path.
var groups = map[string]string{
	"deployments": "apis/apps/v1", "jobs": "apis/batch/v1", "leases": "apis/coordination.k8s.io/v1",
	"poddisruptionbudgets": "apis/policy/v1",
	"widgets":              "apis/example.com/v1",
}

func (s *script) path(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	group := "api/v1"
	if g, ok := groups[strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '?' })[0]]; ok {
		group = g
	}
	return "/" + group + "/namespaces/" + s.ns + "/" + p
}

var headerPart = regexp.MustCompile(`^([A-Z][\w-]*):(\S+) ?`)

func (s *script) request(method, rest string) answer {
	s.t.Helper()
	path, body, _ := strings.Cut(rest, " ")
	var headers []string
	if method == "PATCH" {
		headers = []string{"Content-Type", "application/merge-patch+json"}
	}
	for {
		part := headerPart.FindStringSubmatch(body)
		if part == nil {
			break
		}
		headers, body = append(headers, part[1], part[2]), body[len(part[0]):]
	}
	if strings.HasSuffix(strings.Join(headers, " "), "yaml") {
		body = strings.ReplaceAll(body, `\n`, "\n")
	}
	s.before, s.dry = s.store.Revision(), strings.Contains(path+body, "dryRun")
	s.t.Logf("%s %s %s", method, path, body)
	return s.do(method, s.path(path), body, headers...)
}

func (s *script) check(a answer, code, want string) {
	s.t.Helper()
	if fmt.Sprint(a.code) != code {
		s.t.Fatalf("status %d, want %s: %s", a.code, code, a.body)
	}
	kind, fields, _ := strings.Cut(want, " ")
	stored, fields := strings.HasPrefix(fields, "stored"), strings.TrimPrefix(fields, "stored")
	quiet := a.code >= http.StatusBadRequest || s.dry
	if now := s.store.Revision(); quiet && !stored && now != s.before {
		s.t.Errorf("the revision went from %d to %d", s.before, now)
	}
	if a.code >= http.StatusBadRequest {
		if got := a.get("reason") + ": " + a.get("message"); got != want {
			s.t.Errorf("got  %s\nwant %s", got, want)
		}
		if a.get("kind") != "Status" || a.get("status") != "Failure" || a.get("code") != code {
			s.t.Errorf("not a Status: %s", a.body)
		}
		return
	}
	if kind != "-" && a.get("kind") != kind {
		s.t.Errorf("kind %s, want %s: %s", a.get("kind"), kind, a.body)
	}
	s.fields(a, fields)
}

func (s *script) warned(a answer, want string) {
	s.t.Helper()
	if want != "" {
		want = fmt.Sprintf("299 - %q", want)
	}
	if got := a.head.Get("Warning"); got != want {
		s.t.Errorf("warning %q, want %q", got, want)
	}
}

// fields compares "path=value" with an object's fields and keeps "name:=path".
func (s *script) fields(a answer, list string) {
	s.t.Helper()
	for _, f := range strings.Fields(list) {
		path, want, _ := strings.Cut(f, "=")
		if name, keep := strings.CutSuffix(path, ":"); keep {
			s.vars[name] = a.get(strings.Split(want, ".")...)
			continue
		}
		got := a.get(strings.Split(path, ".")...)
		if want == "*" && got != "" || got == want {
			continue
		}
		s.t.Errorf("%s is %q, want %q: %s", path, got, want, a.body)
	}
}

// leastOf has the required fields of an object, by the end of its collection's path.
func leastOf(path string) string {
	switch {
	case strings.HasSuffix(path, "events"):
		return `"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R","type":"Normal","regarding":{"namespace":"NS"},"involvedObject":{"namespace":"NS"},"reportingComponent":"example.com/c"`
	case strings.HasSuffix(path, "horizontalpodautoscalers"):
		return `"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"a","apiVersion":"apps/v1"}}`
	}
	return `"spec":{"containers":[{"name":"c","image":"i"}]}`
}

// watched returns the events of a resource since the beginning of the script. The last event is of
// an object that watched creates for this.
func (s *script) watched(path string) []string {
	s.t.Helper()
	end := "zz-" + s.ns
	s.do("POST", s.path(path), `{"metadata":{"name":"`+end+`"},`+s.fill(leastOf(path))+`}`).want(201)
	resp, err := http.Get(fmt.Sprintf("%s%s?watch=1&timeoutSeconds=30&resourceVersion=%d", s.http.URL, s.path(path), s.start))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var events []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `"name":"`+end+`"`) {
			return events
		}
		events = append(events, lines.Text())
	}
	s.t.Fatalf("the watch ended after %d events", len(events))
	return nil
}

func (s *script) event(line, kind, want string) {
	s.t.Helper()
	var e struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		s.t.Fatal(err)
	}
	if e.Type != kind {
		s.t.Fatalf("event %s, want %s %s", line, kind, want)
	}
	s.fields(answer{t: s.t, body: string(e.Object)}, want)
}
