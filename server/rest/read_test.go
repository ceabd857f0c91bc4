package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

// versioned is a collection with a history. It holds a=2, c, d and e, all but c with the
// label odd, and held a=1, b and c at the resourceVersion {first}. {now} is the newest.
type versioned struct {
	*harness
	vars  map[string]string // what {name} stands for in a row
	names map[string]string // the other way round
}

func newVersioned(h *harness) *versioned {
	v := &versioned{harness: h, vars: map[string]string{}, names: map[string]string{}}
	for _, name := range []string{"a", "b", "c"} {
		v.create(name)
	}
	v.set("first", fmt.Sprint(h.store.Revision()))
	v.create("d")
	h.do("PUT", configMaps+"/a", `{"metadata":{"name":"a","labels":{"odd":"1"}},"data":{"key":"2"}}`).want(200)
	h.do("DELETE", configMaps+"/b", "").want(200)
	v.create("e")
	v.set("now", fmt.Sprint(h.store.Revision()))
	return v
}

func (v *versioned) create(name string) {
	labels := `{"odd":"1"}`
	if name == "c" {
		labels = "{}"
	}
	v.do("POST", configMaps, `{"metadata":{"name":"`+name+`","labels":`+labels+`},"data":{"key":"1"}}`).want(201)
}

func (v *versioned) set(name, value string) { v.vars[name], v.names[value] = value, name }

// token keeps the continue token of a first page.
func (v *versioned) token(name, query string) {
	v.set(name, v.do("GET", configMaps+query, "").want(200).get("metadata", "continue"))
}

func (v *versioned) fill(s string) string {
	for name, value := range v.vars {
		s = strings.ReplaceAll(s, "{"+name+"}", url.QueryEscape(value))
	}
	return s
}

// outcome is the answer to a read in one line: "a=2 c @now +2" is a page of a list at
// {now} with two more to come ("…" if their number is not told), "410 Expired: …" an error.
func (v *versioned) outcome(a answer) string {
	if a.code != 200 {
		out := fmt.Sprintf("%d %s: %s", a.code, a.get("reason"), v.unfill(a.get("message")))
		if c := a.get("details", "causes", "0", "reason"); c != "" {
			out += " [" + c + "]"
		}
		if s := a.head.Get("Retry-After"); s != "" {
			out += " retry " + s
		}
		if a.get("metadata", "continue") != "" {
			out += " with a token"
		}
		return out
	}
	if !strings.HasSuffix(a.get("kind"), "List") {
		return a.get("metadata", "name") + "=" + a.get("data", "key")
	}
	var list struct {
		Metadata struct {
			ResourceVersion, Continue string
			RemainingItemCount        *int64
		}
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		v.t.Fatalf("%v: %s", err, a.body)
	}
	var out []string
	for _, item := range list.Items {
		name := item.Metadata.Name
		if name == "a" {
			name += "=" + item.Data["key"]
		}
		out = append(out, name)
	}
	out = append(out, "@"+v.names[list.Metadata.ResourceVersion])
	switch m := list.Metadata; {
	case m.RemainingItemCount != nil:
		out = append(out, fmt.Sprintf("+%d", *m.RemainingItemCount))
	case m.Continue != "":
		out = append(out, "…")
	}
	return strings.Join(out, " ")
}

func (v *versioned) unfill(s string) string {
	for name, value := range v.vars {
		s = strings.ReplaceAll(s, " "+value, " {"+name+"}")
	}
	return s
}

func token(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

const (
	tooLarge = "504 Timeout: Timeout: Too large resource version: 9000000000, current: {now} [ResourceVersionTooLarge] retry 1"
	noNumber = `resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`
	noMatch  = `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: `
	noToken  = "400 BadRequest: invalid continue token: continue key is not valid"
)

// versionRows are the cells of the tables under "Semantics for get and list" and the
// sentences under "Resource versions" and "Retrieving large results sets in chunks" at
// https://kubernetes.io/docs/reference/using-api/api-concepts/, and what kube-apiserver
// answers where they leave it open.
var versionRows = []struct{ name, path, want string }{
	// get
	{"get unset: most recent", "/a", "a=2"},
	{"get empty: most recent", "/a?resourceVersion=", "a=2"},
	{"get 0: any", "/a?resourceVersion=0", "a=2"},
	{"get 00 is 0", "/a?resourceVersion=00", "a=2"},
	{"get value: not older than", "/a?resourceVersion={first}", "a=2"},
	{"get the newest", "/a?resourceVersion={now}", "a=2"},
	{"get of a deleted object, not older than a version at which it existed", "/b?resourceVersion={first}", `404 NotFound: configmaps "b" not found`},
	{"get future", "/a?resourceVersion=9000000000", tooLarge},
	{"get of an absent object, future", "/nobody?resourceVersion=9000000000", tooLarge},
	{"get beyond 63 bits", "/a?resourceVersion=9223372036854775808", strings.Replace(tooLarge, "9000000000", "9223372036854775808", 1)},
	{"get no number", "/a?resourceVersion=abc", "500 : " + noNumber},
	{"get negative", "/a?resourceVersion=-1", "500 : " + strings.ReplaceAll(noNumber, "abc", "-1")},
	{"get beyond 64 bits", "/a?resourceVersion=18446744073709551616", `500 : resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range`},
	{"get ignores resourceVersionMatch", "/a?resourceVersion=0&resourceVersionMatch=Exact", "a=2"},

	// list: unset match, unset limit
	{"list, match unset, version unset: most recent", "", "a=2 c d e @now"},
	{"list, match unset, version empty: most recent", "?resourceVersion=", "a=2 c d e @now"},
	{"list, match unset, version 0: any", "?resourceVersion=0", "a=2 c d e @now"},
	{"list, match unset, version: not older than", "?resourceVersion={first}", "a=2 c d e @now"},
	{"list, match empty, version: not older than", "?resourceVersion={first}&resourceVersionMatch=", "a=2 c d e @now"},
	{"list, limit 0 is no limit", "?resourceVersion={first}&limit=0", "a=2 c d e @now"},
	{"list, negative limit is no limit", "?limit=-1", "a=2 c d e @now"},
	// list: unset match, limit
	{"list, limit, version unset: most recent", "?limit=2", "a=2 c @now +2"},
	{"list, limit, version 0: any, and all of it", "?limit=2&resourceVersion=0", "a=2 c d e @now"},
	{"list, limit, version: exact", "?limit=2&resourceVersion={first}", "a=1 b @first +1"},
	{"list, limit, version 00: most recent", "?limit=2&resourceVersion=00", "a=2 c @now +2"},
	{"list, limit of all there is", "?limit=4", "a=2 c d e @now"},
	{"list, limit beyond all there is", "?limit=9223372036854775807", "a=2 c d e @now"},
	// list: Exact
	{"list, Exact, version unset: invalid", "?resourceVersionMatch=Exact", noMatch + "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided [FieldValueForbidden]"},
	{"list, Exact, version 0: invalid", "?resourceVersionMatch=Exact&resourceVersion=0", noMatch + `Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0" [FieldValueForbidden]`},
	{"list, Exact, version: exact", "?resourceVersionMatch=Exact&resourceVersion={first}", "a=1 b c @first"},
	{"list, Exact, the newest", "?resourceVersionMatch=Exact&resourceVersion={now}", "a=2 c d e @now"},
	{"list, Exact, limit, version: exact", "?resourceVersionMatch=Exact&resourceVersion={first}&limit=1", "a=1 @first +2"},
	{"list, Exact, limit, version unset: invalid", "?resourceVersionMatch=Exact&limit=1", noMatch + "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided [FieldValueForbidden]"},
	// list: NotOlderThan
	{"list, NotOlderThan, version unset: invalid", "?resourceVersionMatch=NotOlderThan", noMatch + "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided [FieldValueForbidden]"},
	{"list, NotOlderThan, version 0: any", "?resourceVersionMatch=NotOlderThan&resourceVersion=0", "a=2 c d e @now"},
	{"list, NotOlderThan, limit, version 0: any, and all of it", "?resourceVersionMatch=NotOlderThan&resourceVersion=0&limit=2", "a=2 c d e @now"},
	{"list, NotOlderThan, version: not older than", "?resourceVersionMatch=NotOlderThan&resourceVersion={first}", "a=2 c d e @now"},
	{"list, NotOlderThan, limit, version: not older than", "?resourceVersionMatch=NotOlderThan&resourceVersion={first}&limit=2", "a=2 c @now +2"},
	// list: nonsense
	{"list, unknown match", "?resourceVersionMatch=Nonsense&resourceVersion={first}", noMatch + `Unsupported value: "Nonsense": supported values: "Exact", "NotOlderThan", "" [FieldValueNotSupported]`},
	{"list, unknown match, version unset", "?resourceVersionMatch=Nonsense", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Unsupported value: "Nonsense": supported values: "Exact", "NotOlderThan", ""] [FieldValueForbidden]`},
	{"list, version no number", "?resourceVersion=abc", "400 BadRequest: invalid resource version: " + noNumber},
	{"list, Exact, version no number", "?resourceVersion=abc&resourceVersionMatch=Exact", "400 BadRequest: invalid resource version: " + noNumber},
	{"list, limit no number", "?limit=abc", `400 BadRequest: strconv.ParseInt: parsing "abc": invalid syntax`},
	{"list, sendInitialEvents is for watches", "?sendInitialEvents=true", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list [FieldValueForbidden]`},
	// list: versions that have not come up
	{"list, future", "?resourceVersion=9000000000", tooLarge},
	{"list, NotOlderThan, future", "?resourceVersion=9000000000&resourceVersionMatch=NotOlderThan", tooLarge},
	{"list, Exact, future", "?resourceVersion=9000000000&resourceVersionMatch=Exact", tooLarge},
	{"list, limit, future", "?resourceVersion=9000000000&limit=1", tooLarge},
	{"list, beyond 63 bits", "?resourceVersion=9223372036854775808&resourceVersionMatch=Exact", strings.Replace(tooLarge, "9000000000", "9223372036854775808", 1)},
	// one object
	{"list of one object", "?fieldSelector=metadata.name%3Da", "a=2 @now"},
	{"list of one object has no next page", "?fieldSelector=metadata.name%3Da&limit=1", "a=2 @now"},
	{"list of one object, limit, version: not older than", "?fieldSelector=metadata.name%3Da&limit=1&resourceVersion={first}", "a=2 @now"},
	{"list of one object, Exact", "?fieldSelector=metadata.name%3Da&resourceVersionMatch=Exact&resourceVersion={first}", "a=1 @first"},
	{"list of one object that is gone, Exact", "?fieldSelector=metadata.name%3Db&resourceVersionMatch=Exact&resourceVersion={first}", "b @first"},
	{"list of one object that is not selected", "?fieldSelector=metadata.name%3Dc&labelSelector=odd", "@now"},
	{"list of an empty name", "?fieldSelector=metadata.name%3D", "@now"},
	// remainingItemCount
	{"remainingItemCount is not told with a label selector", "?limit=1&labelSelector=odd", "a=2 @now …"},
	{"remainingItemCount is not told with a field selector", "?limit=1&fieldSelector=metadata.name!%3Da", "c @now …"},
	{"an empty selector selects all", "?limit=1&labelSelector=&fieldSelector=", "a=2 @now +3"},
	{"a page of the last selected objects", "?limit=2&labelSelector=odd&fieldSelector=metadata.name!%3Da", "d e @now"},
	// continue
	{"continue is at the version of the first page", "?limit=2&continue={past}", "c @first"},
	{"continue without a limit", "?continue={past}", "c @first"},
	{"continue in between", "?limit=2&continue={one}", "c d @now +1"},
	{"continue to the end", "?limit=3&continue={one}", "c d e @now"},
	{"continue with a selector", "?limit=1&continue={one}&labelSelector=odd", "d @now …"},
	{"continue, version 0", "?limit=3&continue={one}&resourceVersion=0", "c d e @now"},
	{"continue, version", "?limit=1&continue={one}&resourceVersion={now}", "400 BadRequest: specifying resource version is not allowed when using continue"},
	{"continue, version no number", "?limit=1&continue={one}&resourceVersion=abc", "400 BadRequest: specifying resource version is not allowed when using continue"},
	{"continue, match", "?limit=1&continue={one}&resourceVersion={now}&resourceVersionMatch=Exact", noMatch + "Forbidden: resourceVersionMatch is forbidden when continue is provided [FieldValueForbidden]"},
	{"continue with a newer token", "?limit=2&continue=" + token(`{"v":"meta.k8s.io/v1","rv":9000000000,"start":"c"}`), tooLarge},
	{"continue on the present state", "?limit=2&continue=" + token(`{"v":"meta.k8s.io/v1","rv":-1,"start":"c"}`), "c d @now +1"},
	{"token that is not base64", "?continue=!!!", noToken + ": illegal base64 data at input byte 0"},
	{"token that is not JSON", "?continue=" + token("hello"), noToken + ": invalid character 'h' looking for beginning of value"},
	{"token of another version", "?continue=" + token(`{"v":"meta.k8s.io/v2","rv":1,"start":"c"}`), noToken + ": server does not recognize this encoded version meta.k8s.io/v2"},
	{"token without a version", "?continue=" + token(`{"v":"meta.k8s.io/v1","start":"c"}`), noToken + ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"},
	{"token without a key", "?continue=" + token(`{"v":"meta.k8s.io/v1","rv":1}`), noToken + ": encoded start key empty (version meta.k8s.io/v1)"},
	{"token that leaves the collection", "?continue=" + token(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/x"}`), noToken + ": ../../secrets/x"},
}

func TestResourceVersions(t *testing.T) {
	onEachDialect(t, awayOnPostgres, rest.Options{FutureWait: 20 * time.Millisecond}, func(t *testing.T, h *harness) {
		v := newVersioned(h)
		v.token("past", "?limit=2&resourceVersion="+v.vars["first"])
		v.token("one", "?limit=1")
		for _, row := range versionRows {
			a := h.do("GET", configMaps+v.fill(row.path), "")
			if got := v.outcome(a); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
			}
			if a.code >= 400 && (a.get("kind") != "Status" || a.get("code") != fmt.Sprint(a.code)) {
				t.Errorf("%s: not a Status: %s", row.name, a.body)
			}
		}
	})
}

// TestFutureVersionIsWaitedFor: a get or list at a version that the server does not know yet waits
// for it.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#unavailable-resource-versions
func TestFutureVersionIsWaitedFor(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{FutureWait: time.Minute}, func(t *testing.T, h *harness) {
		for i, read := range []string{"/new%d?resourceVersion=%d", "?resourceVersion=%[2]d&fieldSelector=metadata.name%%3Dnew%[1]d", "?resourceVersion=%[2]d&resourceVersionMatch=Exact&fieldSelector=metadata.name%%3Dnew%[1]d"} {
			path := configMaps + fmt.Sprintf(read, i, h.store.Revision()+1)
			done := make(chan answer, 1)
			go func() { done <- h.do("GET", path, "") }()
			select {
			case a := <-done:
				t.Fatalf("%s did not wait: %s", path, a.body)
			case <-time.After(20 * time.Millisecond):
			}
			h.do("POST", configMaps, configMap(fmt.Sprintf("new%d", i), "1")).want(201)
			if a := <-done; a.code != 200 || !strings.Contains(a.body, fmt.Sprintf(`"name":"new%d"`, i)) {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	})
}
