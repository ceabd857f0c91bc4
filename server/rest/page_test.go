package rest_test

import (
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestExpiredVersions wants 410 Expired for lists at a version that was compacted, and a new
// continue token for the rest of the list at the present version.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses
func TestExpiredVersions(t *testing.T) {
	const gone = "410 Expired: The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now " +
		"may show up in the list. with a token"
	onEachDialect(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		v := newVersioned(h)
		v.token("past", "?limit=1&resourceVersion="+v.vars["first"])
		v.create("f")
		v.set("now", fmt.Sprint(h.store.Revision()))
		if err := h.store.CompactTo(t.Context(), h.store.Revision()-1); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct{ name, path, want string }{
			{"Exact", "?resourceVersionMatch=Exact&resourceVersion={first}", "410 Expired: The resourceVersion for the provided list is too old."},
			{"limit", "?limit=1&resourceVersion={first}", "410 Expired: The resourceVersion for the provided list is too old."},
			{"NotOlderThan", "?resourceVersion={first}&resourceVersionMatch=NotOlderThan", "a=2 c d e f @now"},
			{"get", "/a?resourceVersion={first}", "a=2"},
			{"continue", "?limit=2&continue={past}", gone},
			{"continue without a limit", "?continue={past}", gone},
		} {
			a := h.do("GET", configMaps+v.fill(row.path), "")
			if got := v.outcome(a); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
			}
			if row.name == "continue" {
				v.set("fresh", a.get("metadata", "continue"))
			}
		}
		// The token follows on a=1, the only one of its page.
		if got := v.outcome(h.do("GET", configMaps+v.fill("?limit=2&continue={fresh}"), "")); got != "c d @now +2" {
			t.Errorf("inconsistent continuation: %s", got)
		}
	})
}

// TestPagesAreConsistent: the resourceVersion of a list is the same on all pages, which are a
// consistent snapshot.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
func TestPagesAreConsistent(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		v := newVersioned(h)
		var got []string
		for next := ""; ; {
			a := h.do("GET", configMaps+"?limit=1&continue="+next, "").want(200)
			got = append(got, v.outcome(a))
			if next = a.get("metadata", "continue"); next == "" {
				break
			}
			v.create(fmt.Sprintf("x%d", len(got)))
			h.do("DELETE", configMaps+"/e", "")
		}
		if want := "[a=2 @now +3 c @now +2 d @now +1 e @now]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}
