package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

// essence is what the events of a request say beside who made it: stage, code, message and
// annotations other than the authorizer's, in this order.
func essence(events []map[string]any) (list []string) {
	for _, e := range events {
		line := fmt.Sprint(e["stage"])
		if status, ok := e["responseStatus"].(map[string]any); ok {
			line += fmt.Sprintf(" %v", status["code"])
			if message := status["message"]; message != nil {
				line += fmt.Sprintf(" %v", message)
			}
		}
		notes, _ := e["annotations"].(map[string]any)
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range notes {
				if !strings.HasPrefix(name, "authorization.") && !yield(name) {
					return
				}
			}
		}) {
			line += fmt.Sprintf(" %s=%v", name, notes[name])
		}
		list = append(list, line)
	}
	return list
}

// asked makes a request with an Audit-Id.
func asked(t *testing.T, client *http.Client, id, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Audit-Id", id)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // one is broken off
	return answer.StatusCode
}

func TestAuditPanic(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	route(s, "/early", func(echo.Context) error { panic("too early") })
	route(s, "/late", func(c echo.Context) error {
		fmt.Fprint(c.Response(), "half of")
		c.Response().Flush()
		panic("too late")
	})
	client := admin(t, s)
	if code := asked(t, client, "early", "GET", s.URL()+"/early", ""); code != 500 {
		t.Errorf("code %d", code)
	}
	asked(t, client, "late", "GET", s.URL()+"/late", "")
	must(t, s.Close())
	for id, events := range readEvents(t, log) {
		if id != "early" && id != "late" {
			continue
		}
		want := []string{"RequestReceived", "Panic 500 APIServer panic'd: too " + id}
		if d := diff.Diff(want, essence(events)); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
	}
}

// A request that is let finish by a stop, and a watch that is ended by it, are logged whole.
func TestAuditStop(t *testing.T) {
	for _, mode := range []string{"blocking", "blocking-strict", "batch"} {
		t.Run(mode, func(t *testing.T) {
			c, log := audited(t)
			c.Audit.LogOptions.BatchOptions.Mode = mode
			s := start(t, c)
			client := admin(t, s)
			half, rest := io.Pipe()
			r, err := http.NewRequest("POST", s.URL()+"/api/v1/namespaces/default/configmaps", half)
			must(t, err)
			r.Header.Set("Audit-Id", "write")
			r.Header.Set("Content-Type", "application/json")
			codes := make(chan int, 1)
			go func() {
				answer, err := client.Do(r)
				if err != nil {
					codes <- 0
					return
				}
				answer.Body.Close()
				codes <- answer.StatusCode
			}()
			_, err = rest.Write([]byte(`{"metadata":{"name":"a"}`))
			must(t, err)
			w, err := http.NewRequest("GET", s.URL()+"/api/v1/namespaces/default/configmaps?watch=1", nil)
			must(t, err)
			w.Header.Set("Audit-Id", "watch")
			watch, err := client.Do(w)
			must(t, err)
			defer watch.Body.Close()
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			eventually(t, "the server stops", s.running.closed.Load)
			_, err = rest.Write([]byte(`}`))
			must(t, err)
			must(t, rest.Close())
			if code := <-codes; code != 201 {
				t.Errorf("the write got %d", code)
			}
			must(t, <-closed)
			events := readEvents(t, log)
			for id, want := range map[string][]string{
				"write": {"RequestReceived", "ResponseComplete 201"},
				"watch": {"RequestReceived", "ResponseStarted 200", "ResponseComplete 200"},
			} {
				if d := diff.Diff(want, essence(events[id])); d != "" {
					t.Errorf("%s (-want +got):\n%s", id, d)
				}
			}
		})
	}
}

// Connections that are handed on have an event when they begin and one when they end.
func TestAuditExec(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, log := audited(t)
			r := startReached(t, c)
			e := r.stream(t, protocol, "exec", &corev1.PodExecOptions{Command: []string{"echo"}, Container: "c", Stdout: true})
			must(t, e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}))
			must(t, r.Close())
			for _, events := range readEvents(t, log) {
				if ref, _ := events[0]["objectRef"].(map[string]any); ref["subresource"] != "exec" {
					continue
				}
				want := []string{"RequestReceived", "ResponseStarted 101", "ResponseComplete 101"}
				if d := diff.Diff(want, essence(events)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				return
			}
			t.Error("no events")
		})
	}
}

// A token is asked for and used: the same id is in both events.
func TestAuditTokens(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	addAccount(t, s, "robot")
	token := requestToken(t, s, "robot", authenticationv1.TokenRequestSpec{})
	if whoami(t, s, token) == nil {
		t.Error("the token is no good")
	}
	must(t, s.Close())
	var issued, used any
	for _, events := range readEvents(t, log) {
		last := events[len(events)-1]
		if notes, _ := last["annotations"].(map[string]any); notes["authentication.kubernetes.io/issued-credential-id"] != nil {
			issued = notes["authentication.kubernetes.io/issued-credential-id"]
		}
		who, _ := last["user"].(map[string]any)
		if who["username"] == "system:serviceaccount:default:robot" {
			used = who["extra"].(map[string]any)["authentication.kubernetes.io/credential-id"]
		}
	}
	if issued == nil || !reflect.DeepEqual(used, []any{issued}) {
		t.Errorf("issued %v, used %v", issued, used)
	}
	if text, err := os.ReadFile(log); err != nil || strings.Contains(string(text), token) {
		t.Errorf("the log has the token (%v)", err)
	}
}

// What an extension server answers is logged without its objects, and it is told the id.
func TestAuditExtension(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	e := startExtension(t, believed(t, []*Server{s}))
	x := clientOf(t, s)
	x.do("POST", "/api/v1/namespaces", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"demo"}}`, 201)
	x.do("POST", apiServices, e.object(""), 201)
	x.do("POST", demoServices, extService, 201)
	eventually(t, "requests are handed on", func() bool {
		code, _, _ := do(t, x.http, "GET", x.url+extensionAPI, "")
		return code == http.StatusOK
	})
	for id, request := range map[string]string{
		"read": "GET /namespaces/whole/things/a", "write": "POST /namespaces/whole/things", "teapot": "GET /namespaces/whole/things/teapot",
	} {
		method, path, _ := strings.Cut(request, " ")
		asked(t, x.http, id, method, x.url+extensionAPI+path, "{}")
	}
	must(t, s.Close())
	events := readEvents(t, log)
	for id, want := range map[string]string{"read": "ResponseComplete 200", "write": "ResponseComplete 200", "teapot": "ResponseComplete 418"} {
		if d := diff.Diff([]string{"RequestReceived", want}, essence(events[id])); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
			continue
		}
		if last := events[id][1]; last["requestObject"] != nil || last["responseObject"] != nil || last["level"] != "RequestResponse" {
			t.Errorf("%s: %v", id, last)
		}
	}
}

// A request that runs out of time, and one of too many, have that in their events.
func TestAuditLimits(t *testing.T) {
	c, log := audited(t)
	c.MaxReads = 1
	s := start(t, c)
	route(s, "/slow", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	entered, leave := make(chan struct{}), make(chan struct{})
	route(s, "/healthz/hold", func(echo.Context) error { close(entered); <-leave; return nil })
	if code := asked(t, admin(t, s), "slow", "GET", s.URL()+"/slow?timeout=50ms", ""); code != 504 {
		t.Errorf("code %d", code)
	}
	held, client := make(chan error, 1), anonymous(t, s)
	go func() {
		answer, err := client.Get(s.URL() + "/healthz/hold")
		if err == nil {
			answer.Body.Close()
		}
		held <- err
	}()
	<-entered
	if code := asked(t, client, "many", "GET", s.URL()+"/version", ""); code != 429 {
		t.Errorf("code %d", code)
	}
	close(leave)
	must(t, <-held)
	must(t, s.Close())
	events := readEvents(t, log)
	for id, want := range map[string]string{
		"slow": "ResponseComplete 504 Timeout: request did not complete within the allotted timeout", "many": "ResponseComplete 429",
	} {
		if d := diff.Diff([]string{"RequestReceived", want}, essence(events[id])); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
	}
}

// Patches that are not JSON are logged too. An event that cannot be encoded is none.
func TestAuditPatches(t *testing.T) {
	c, log := audited(t)
	s := start(t, c)
	client := admin(t, s)
	do(t, client, "POST", s.URL()+"/api/v1/namespaces", `{"metadata":{"name":"request"}}`)
	tests := []struct{ id, media, patch, want string }{
		// The first makes the object that the others are about.
		{"apply", "application/apply-patch+yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d {k: v}\n", "ResponseComplete 201"},
		{"bomb", "application/apply-patch+yaml", "a: &a [" + strings.Repeat("x,", 5000) + "]\nb: [" + strings.Repeat("*a,", 5000) + "]\n", "ResponseComplete 413"},
		{"broken", "application/merge-patch+json", `{"data":`, "ResponseComplete 400"},
		{"binary", "application/json-patch+json", "\xff\x00", "ResponseComplete 400"},
	}
	for _, test := range tests {
		r, err := http.NewRequest("PATCH", s.URL()+"/api/v1/namespaces/request/configmaps/a?fieldManager=m", strings.NewReader(test.patch))
		must(t, err)
		r.Header.Set("Audit-Id", test.id)
		r.Header.Set("Content-Type", test.media)
		answer, err := client.Do(r)
		must(t, err)
		answer.Body.Close()
	}
	must(t, s.Close())
	all := readEvents(t, log)
	for _, test := range tests {
		events := all[test.id]
		if len(events) != 2 || !strings.HasPrefix(essence(events)[1], test.want) || events[1]["requestObject"] == nil {
			t.Errorf("%s: %.500v, want %s", test.id, events, test.want)
		}
	}
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}}
	if d := diff.Diff(want, all["apply"][1]["requestObject"]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A version that only this server has is logged as deprecated, too.
func TestAuditRemoved(t *testing.T) {
	c, log := audited(t)
	c.ServeRemovedAPIs = []string{"extensions/v1beta1"}
	s := start(t, c)
	if code := asked(t, admin(t, s), "old", "GET", s.URL()+"/apis/extensions/v1beta1/namespaces/meta/ingresses", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	want := []string{"RequestReceived", "ResponseComplete 200 k8s.io/deprecated=true k8s.io/removed-release=1.22"}
	if d := diff.Diff(want, essence(readEvents(t, log)["old"])); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
