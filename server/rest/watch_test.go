package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

// newWatched makes a history to watch: a changes its label from x to y and back after
// {first}, then its data; b is created and deleted, o is in another namespace, a2 is created at
// {now}.
func newWatched(h *harness) *versioned {
	v := &versioned{harness: h, vars: map[string]string{}, names: map[string]string{}}
	put := func(method, path, name, app, value string) {
		h.do(method, path, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{%s}},"data":{"key":%q}}`, name, app, value)).want(map[string]int{"POST": 201, "PUT": 200}[method])
	}
	put("POST", configMaps, "a", `"app":"x"`, "1")
	v.set("first", fmt.Sprint(h.store.Revision()))
	put("POST", configMaps, "b", "", "1")
	put("PUT", configMaps+"/a", "a", `"app":"y"`, "1")
	put("PUT", configMaps+"/a", "a", `"app":"x"`, "1")
	put("PUT", configMaps+"/a", "a", `"app":"x"`, "3")
	put("POST", "/api/v1/namespaces/other/configmaps", "o", `"app":"x"`, "1")
	h.do("DELETE", configMaps+"/b", "").want(200)
	put("POST", configMaps, "a2", `"app":"x"`, "1")
	v.set("now", fmt.Sprint(h.store.Revision()))
	return v
}

// seen is an event as a client decodes it.
type seen struct {
	Type   string
	Object struct {
		Kind, Reason, Message string
		Code                  int
		Metadata              struct {
			Name, ResourceVersion string
			Labels, Annotations   map[string]string
		}
		Data              map[string]string
		ColumnDefinitions []any
		Rows              []struct {
			Cells  []any
			Object struct {
				Kind     string
				Metadata struct{ Name string }
			}
		}
	}
}

// show is an event in one line: "MODIFIED a=1/x" is a with the value 1 and the label x.
func (v *versioned) show(e *seen) string {
	o := &e.Object
	switch {
	case e.Type == "ERROR":
		return fmt.Sprintf("ERROR %d %s: %s", o.Code, o.Reason, v.unfill(o.Message))
	case e.Type == "BOOKMARK":
		out := "BOOKMARK " + o.Kind + "@" + v.names[o.Metadata.ResourceVersion]
		if o.Metadata.Annotations["k8s.io/initial-events-end"] == "true" {
			out += " end"
		}
		return out
	case o.Kind == "Table":
		return fmt.Sprintf("%s Table of %d columns: %v %s %s", e.Type, len(o.ColumnDefinitions), o.Rows[0].Cells[0], o.Rows[0].Object.Kind, o.Rows[0].Object.Metadata.Name)
	case o.Kind == "PartialObjectMetadata":
		return e.Type + " metadata of " + o.Metadata.Name
	}
	return fmt.Sprintf("%s %s=%s/%s", e.Type, o.Metadata.Name, o.Data["key"], o.Metadata.Labels["app"])
}

// stream is a whole JSON stream in one line.
func (v *versioned) stream(body string) string {
	var out []string
	for _, line := range strings.SplitAfter(body, "\n") {
		if line == "" {
			continue
		}
		var e seen
		if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.HasSuffix(line, "}\n") {
			v.t.Fatalf("event %q: %v", line, err)
		}
		out = append(out, v.show(&e))
	}
	return strings.Join(out, ", ")
}

const (
	watchPath = configMaps + "?watch=true&"
	state     = "ADDED a=3/x, ADDED a2=1/x"
	changes   = "ADDED b=1/, MODIFIED a=1/y, MODIFIED a=1/x, MODIFIED a=3/x, DELETED b=1/, ADDED a2=1/x"
	changesA  = "MODIFIED a=1/y, MODIFIED a=1/x, MODIFIED a=3/x"
	changesX  = "DELETED a=1/x, ADDED a=1/x, MODIFIED a=3/x, ADDED a2=1/x"
	oldPath   = "/api/v1/watch/namespaces/default/configmaps"
	initial   = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
	noInitial = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"
	badWatch  = `422 Invalid: ListOptions.meta.k8s.io "" is invalid: `
	asTable   = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// watchRows are the sentences under "Efficient detection of changes" and "Streaming
// lists", the table under "Semantics for watch" at
// https://kubernetes.io/docs/reference/using-api/api-concepts/, and what kube-apiserver
// answers where they leave it open.
var watchRows = []struct{ name, path, accept, want string }{
	{"version unset: state, then changes", watchPath, "", state},
	{"version 0: state, then changes", watchPath + "resourceVersion=0", "", state},
	{"version 00 is 0", watchPath + "resourceVersion=00", "", state},
	{"version: start at exact", watchPath + "resourceVersion={first}", "", changes},
	{"the newest version: nothing yet", watchPath + "resourceVersion={now}", "", ""},
	{"a future version: nothing yet", watchPath + "resourceVersion=9000000000", "", ""},
	{"a version beyond 63 bits: nothing yet", watchPath + "resourceVersion=9223372036854775808", "", ""},
	{"a version that is no number", watchPath + "resourceVersion=abc", "", "500 : " + noNumber},
	{"timeoutSeconds below 0 is over at once", watchPath + "timeoutSeconds=-1", "", ""},
	{"timeoutSeconds 0 is the server's choice", watchPath + "timeoutSeconds=0", "", state},
	{"timeoutSeconds beyond all time is over at once", watchPath + "timeoutSeconds=9223372036854775807", "", ""},
	{"timeoutSeconds no number", watchPath + "timeoutSeconds=abc", "", `400 BadRequest: strconv.ParseInt: parsing "abc": invalid syntax`},
	{"limit is ignored", watchPath + "limit=1", "", state},
	{"a continue token is ignored", watchPath + "continue=abc", "", state},
	{"all namespaces", "/api/v1/configmaps?watch=1&resourceVersion={first}", "", strings.Replace(changes, "DELETED", "ADDED o=1/x, DELETED", 1)},

	{"an object that leaves the selection is DELETED as it was, one that comes is ADDED", watchPath + "labelSelector=app%3Dx&resourceVersion={first}", "", changesX},
	{"state of a selection", watchPath + "labelSelector=app%3Dx,app!%3Dy", "", state},
	{"a label that is there", watchPath + "labelSelector=app&resourceVersion={first}", "", changesA + ", ADDED a2=1/x"},
	{"a label that is not there", watchPath + "labelSelector=!app&resourceVersion={first}", "", "ADDED b=1/, DELETED b=1/"},
	{"nothing selected", watchPath + "labelSelector=no%3Dne&resourceVersion={first}", "", ""},
	{"one object", watchPath + "fieldSelector=metadata.name%3Da&resourceVersion={first}", "", changesA},
	{"one object's state", watchPath + "fieldSelector=metadata.name%3Da", "", "ADDED a=3/x"},
	{"one object that is deleted", watchPath + "fieldSelector=metadata.name%3Db&resourceVersion={first}", "", "ADDED b=1/, DELETED b=1/"},
	{"one object and a label", watchPath + "fieldSelector=metadata.name%3Da&labelSelector=app%3Dx&resourceVersion={first}", "", "DELETED a=1/x, ADDED a=1/x, MODIFIED a=3/x"},
	{"one name in all namespaces", "/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Do&resourceVersion={first}", "", "ADDED o=1/x"},
	{"all names but one", watchPath + "fieldSelector=metadata.name!%3Da&resourceVersion={first}", "", "ADDED b=1/, DELETED b=1/, ADDED a2=1/x"},
	{"a namespace in the field selector", "/api/v1/configmaps?watch=1&fieldSelector=metadata.namespace%3Dother&resourceVersion={first}", "", "ADDED o=1/x"},
	{"an unknown field", watchPath + "fieldSelector=foo%3Dbar", "", `400 BadRequest: "foo" is not a known field selector: only "metadata.name", "metadata.namespace"`},

	{"deprecated path", oldPath + "?resourceVersion={first}", "", changes},
	{"deprecated path of all namespaces", "/api/v1/watch/configmaps?labelSelector=app&resourceVersion={now}", "", ""},
	{"deprecated path of one object", oldPath + "/a?resourceVersion={first}", "", changesA},
	{"deprecated path of an object that is not there", oldPath + "/zzz", "", ""},
	{"deprecated path of one object and the same name", oldPath + "/a?fieldSelector=metadata.name%3Da", "", "ADDED a=3/x"},
	{"deprecated path of one object and another name", oldPath + "/a?fieldSelector=metadata.name%3Db", "", "400 BadRequest: fieldSelector metadata.name doesn't match requested name"},
	{"deprecated path watches whatever ?watch says", oldPath + "?watch=false", "", state},
	{"watch of an object's own path is a get", configMaps + "/a?watch=true", "", "object a=3"},

	{"match without sendInitialEvents", watchPath + "resourceVersionMatch=NotOlderThan", "", badWatch + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
	{"Exact", watchPath + "resourceVersionMatch=Exact&resourceVersion={first}", "", badWatch + `[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]`},
	{"sendInitialEvents without match", watchPath + "sendInitialEvents=true", "", badWatch + "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"},
	{"sendInitialEvents: state, and a bookmark that ends it", watchPath + initial + "allowWatchBookmarks=true", "", state + ", BOOKMARK ConfigMap@now end"},
	{"sendInitialEvents, version: state not older than", watchPath + initial + "allowWatchBookmarks=true&resourceVersion={first}", "", state + ", BOOKMARK ConfigMap@now end"},
	{"sendInitialEvents, version 0: any state", watchPath + initial + "allowWatchBookmarks=true&resourceVersion=0", "", state + ", BOOKMARK ConfigMap@now end"},
	{"sendInitialEvents, nothing selected", watchPath + initial + "allowWatchBookmarks=true&labelSelector=no%3Dne", "", "BOOKMARK ConfigMap@now end"},
	{"sendInitialEvents without bookmarks has no mark at its end", watchPath + initial, "", state},
	{"sendInitialEvents, future: too large as an event", watchPath + initial + "resourceVersion=9000000000", "", "ERROR 504 Timeout: Timeout: Too large resource version: 9000000000, current: {now}"},
	{"sendInitialEvents false: changes from now on", watchPath + noInitial, "", ""},
	{"sendInitialEvents false, version 0: changes from now on", watchPath + noInitial + "resourceVersion=0", "", ""},
	{"sendInitialEvents false, version: start at exact", watchPath + noInitial + "resourceVersion={first}", "", changes},
	{"bookmarks alone do not mark the end of the state", watchPath + "allowWatchBookmarks=true", "", state},

	{"tables: columns in the first only", watchPath + "resourceVersion=0", asTable, "ADDED Table of 3 columns: a PartialObjectMetadata a, ADDED Table of 0 columns: a2 PartialObjectMetadata a2"},
	{"tables with objects", watchPath + "labelSelector=!app&includeObject=Object&resourceVersion={first}", asTable, "ADDED Table of 3 columns: b ConfigMap b, DELETED Table of 0 columns: b ConfigMap b"},
	{"tables without objects", watchPath + "fieldSelector=metadata.name%3Da&includeObject=None", asTable, "ADDED Table of 3 columns: a  "},
	{"sendInitialEvents as tables", watchPath + initial + "allowWatchBookmarks=true", asTable, "ADDED Table of 3 columns: a PartialObjectMetadata a, ADDED Table of 0 columns: a2 PartialObjectMetadata a2, BOOKMARK Table@now"},
	{"metadata only", watchPath + "resourceVersion={first}&labelSelector=app%3Dx", asPartial, "DELETED metadata of a, ADDED metadata of a, MODIFIED metadata of a, ADDED metadata of a2"},
	{"metadata only, end of the state", watchPath + initial + "allowWatchBookmarks=true&labelSelector=no%3Dne", asPartial, "BOOKMARK PartialObjectMetadata@now end"},
	{"YAML cannot be streamed", watchPath, "application/yaml", "406"},
	{"a media type with stream=watch", watchPath, "application/json;stream=watch", state},
}

func TestWatchSemantics(t *testing.T) {
	o := rest.Options{FutureWait: 10 * time.Millisecond, MinWatch: 15 * time.Millisecond}
	onEachDialect(t, awayOnOthers, o, func(t *testing.T, h *harness) {
		v := newWatched(h)
		for _, row := range watchRows {
			accept := row.accept
			if accept == "" {
				accept = "application/json"
			}
			a := h.do("GET", v.fill(row.path), "", "Accept", accept)
			if got := v.watched(a); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
			}
		}
	})
}

// watched is the answer to a watch in one line. The stream ended by itself, after all events.
func (v *versioned) watched(a answer) string {
	switch {
	case strings.HasPrefix(a.head.Get("Content-Type"), "application/yaml"):
		return fmt.Sprint(a.code)
	case a.code != 200:
		return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", a.code, a.get("reason"), v.unfill(a.get("message"))), " with a token")
	case strings.HasPrefix(a.body, `{"kind"`):
		return "object " + v.outcome(a)
	}
	if got := a.head.Get("Content-Type"); got != "application/json" {
		v.t.Errorf("Content-Type is %q", got)
	}
	return v.stream(a.body)
}

// TestWatchEnds wants a watch to end after timeoutSeconds, and when the server drains.
func TestWatchEnds(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	if got, _ := h.events(configMaps+"?watch=1&timeoutSeconds=1", 100); len(got) != 1 {
		t.Errorf("a watch of one second had %v", got)
	}
	done := make(chan []string)
	go func() {
		got, _ := h.events(configMaps+"?watch=1&timeoutSeconds=25", 100)
		done <- got
	}()
	for h.store.Stats().Watchers == 0 {
		time.Sleep(time.Millisecond)
	}
	h.api.Drain()
	if got := <-done; len(got) != 1 {
		t.Errorf("a drained watch had %v", got)
	}
}
