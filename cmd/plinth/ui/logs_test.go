package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLogs: the containers of a pod are told with their states, and why there is no log in the API's words.
func TestLogs(t *testing.T) {
	b := newWorkbench(t)
	pod := b.make("pods", "default", `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {nodeName: nowhere, initContainers: [{name: setup, image: "setup:1"}], containers: [{name: main, image: "main:1"}, {name: side, image: "side:1"}]}`)
	status := map[string]any{
		"phase":                 "Running",
		"initContainerStatuses": []any{map[string]any{"name": "setup", "state": map[string]any{"terminated": map[string]any{"exitCode": int64(3), "reason": "Error", "message": hostile}}}},
		"containerStatuses": []any{map[string]any{
			"name": "main", "restartCount": int64(4), "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
			"lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(137), "reason": "OOMKilled"}}}},
	}
	_ = unstructured.SetNestedMap(pod.Object, status, "status")
	if _, err := b.of("pods", "default").UpdateStatus(b.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	page := b.open("objects/pods/default/p/logs").is(200).hasNot("<script>alert")
	page.has("setup:1", "exit code 3", hostile, "CrashLoopBackOff", "4 restarts", "OOMKilled, exit code 137", "Log of main", "nowhere")
	b.open("objects/pods/default/p/logs?container=side&previous=1").is(200).has("Log of side", "nowhere")
	b.open("objects/pods/default/p/logs?container=none").is(200).has("container none is not valid for pod p")
	b.open("objects/pods/default/p/logs?follow=1").is(200).has(`data-live="/x/live/logs/default/p?container=main&tail=200"`)
	b.open("live/logs/default/p?container=none").is(200).has("event: fault", "container none is not valid for pod p")
	b.open("objects/pods/default/p/logs?at=" + pod.GetResourceVersion()).is(200).has("Logs are not part of the history")
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`)
	b.open("objects/configmaps/default/one/logs").is(404)
}

// failing reads text, and then fails.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil {
		err = errors.New("cut off")
	}
	return n, err
}

// TestLogLines: lines go on with the time of the last one, which is not sent twice after a cut; an end is told, a cut is
// not, so that the browser asks again.
func TestLogLines(t *testing.T) {
	const text = "2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:02.5Z \x1b[31mtwo\x1b[0m <b>\r\nno time\n"
	play := func(in io.Reader, last string) string {
		w := httptest.NewRecorder()
		s := &stream{w: w, out: http.NewResponseController(w)}
		if err := sendLines(bufio.NewReader(in), s, last); err != nil {
			t.Fatal(err)
		}
		return w.Body.String()
	}
	whole := play(strings.NewReader(text), "")
	for _, want := range []string{"id: 2026-01-01T00:00:02.5Z\n", `["one","two \u003cb\u003e","no time"]`, "event: end\n"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is not in %q", want, whole)
		}
	}
	if cut := play(failing{strings.NewReader(text)}, "2026-01-01T00:00:01.5Z"); strings.Contains(cut, "one") || !strings.Contains(cut, "two") || strings.Contains(cut, "event: end") {
		t.Errorf("after a cut: %q", cut)
	}
	if long := play(strings.NewReader(strings.Repeat("x", 10000)), ""); strings.Count(long, "x") != 10000 {
		t.Errorf("a long line has %d characters", strings.Count(long, "x"))
	}
}

// kubelet serves the logs of a node's pods, and makes the node.
func kubelet(b *workbench, serve http.HandlerFunc) {
	b.Helper()
	server := httptest.NewTLSServer(serve)
	b.Cleanup(server.Close)
	b.Cleanup(server.CloseClientConnections)
	port, err := strconv.ParseInt(server.URL[strings.LastIndex(server.URL, ":")+1:], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	node := b.make("nodes", "", `{apiVersion: v1, kind: Node, metadata: {name: here}}`)
	node.Object["status"] = map[string]any{
		"addresses":       []any{map[string]any{"type": "InternalIP", "address": "127.0.0.1"}},
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": port}},
	}
	if _, err := b.of("nodes", "").UpdateStatus(b.Context(), node, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// TestLogsOfKubelet: a log is read as the kubelet gives it, as text; while it is followed it goes on, until somebody stops
// it or it ends.
func TestLogsOfKubelet(t *testing.T) {
	b := newWorkbench(t)
	more := make(chan string)
	kubelet(b, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/containerLogs/default/p/main" || q.Get("timestamps") != "true" {
			http.Error(w, "not asked for: "+r.URL.String(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "2026-01-01T00:00:01Z tail %s previous %q %s\n", q.Get("tailLines"), q.Get("previous"), hostile)
		w.(http.Flusher).Flush()
		for q.Get("follow") == "true" {
			select {
			case line, ok := <-more:
				if !ok {
					return
				}
				fmt.Fprintln(w, line)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	b.make("pods", "default", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: here, containers: [{name: main, image: "main:1"}]}}`)
	b.open("objects/pods/default/p/logs").is(200).has(`tail 200 previous "" `+hostile).hasNot("<script>alert", "2026-01-01")
	b.open("objects/pods/default/p/logs?previous=1&tail=1000").is(200).has(`tail 1000 previous "true"`)
	tab := tabAt(t, b.page.URL+"/x/", "")
	tab.open("objects/pods/default/p/logs?follow=1")
	tab.sees("tail 200")
	more <- "2026-01-01T00:00:02Z second"
	tab.sees("second")
	tab.accessible()
	close(more)
	tab.sees("The log has ended.")
	tab.sound()
}
