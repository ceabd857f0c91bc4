package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

// fuzzTime is how long one patch of a few kilobytes may take on a busy machine.
const fuzzTime = 5 * time.Minute

// patchTargets are what FuzzPatch and FuzzApply write to.
var patchTargets = []string{"configmap", "deployment", "service", "deployment/status", "deployment/scale"}

// patchFixture puts the objects of patchObjects into a namespace of their own.
func patchFixture(h *harness) {
	for on, body := range patchObjects {
		path := fmt.Sprintf(patchPaths[on], "fuzz")
		h.do("POST", path[:strings.LastIndex(path, "/")], body, "User-Agent", "maker").want(201)
	}
}

// fuzzPath returns the path of a target and of its object.
func fuzzPath(on string) (path, object string) {
	name, sub, isSub := strings.Cut(on, "/")
	object = fmt.Sprintf(patchPaths[name], "fuzz")
	if isSub {
		return object + "/" + sub, object
	}
	return object, object
}

// fuzzSend patches a target and checks what holds for each patch: it succeeds, or is refused and
// changes nothing, and it does not take long.
func fuzzSend(t *testing.T, h *harness, on, query, media string, body []byte) (a, now answer) {
	path, object := fuzzPath(on)
	before, revision := h.do("GET", object, "").want(200), h.store.Revision()
	start := time.Now()
	a = h.do("PATCH", path+query, string(body), "Content-Type", media)
	if took := time.Since(start); took > fuzzTime && len(body) < 4096 {
		t.Fatalf("a patch of %d bytes took %v", len(body), took)
	}
	checkRefusal(t, h, a, revision)
	now = h.do("GET", object, "")
	if a.code >= 400 && now.body != before.body {
		t.Fatalf("a refused patch changed the object:\n%s\n%s", before.body, now.body)
	}
	return a, now
}

// restorePatched undoes a patch, so that each patch is applied to the same object.
func restorePatched(t *testing.T, h *harness, on string) {
	_, object := fuzzPath(on)
	name, _, isSub := strings.Cut(on, "/")
	if isSub {
		h.do("PUT", object+"/status", patchObjects[name], "User-Agent", "maker").want(200)
	}
	h.do("PATCH", object, `{"metadata":{"managedFields":[{}]}}`, "Content-Type", patchMedia["merge"]).want(200)
	if h.do("PUT", object, patchObjects[name], "User-Agent", "maker").code == 200 {
		return
	}
	h.do("PATCH", object, `{"metadata":{"finalizers":null}}`, "Content-Type", patchMedia["merge"]).want(200)
	h.do("DELETE", object, "").want(200)
	h.do("POST", object[:strings.LastIndex(object, "/")], patchObjects[name], "User-Agent", "maker").want(201)
}

// FuzzPatch has the rows of TestPatches and TestFieldValidation as its seeds. These have all
// operations and directives, and all known errors.
func FuzzPatch(f *testing.F) {
	kinds := []string{"json", "merge", "smp"}
	add := func(media, on, body string) {
		for k, kind := range kinds {
			for i, target := range patchTargets {
				if strings.HasPrefix(media, kind) && on == target {
					f.Add([]byte(body), uint8(k), uint8(i), k%2 == 0)
				}
			}
		}
	}
	for _, rows := range [][]patchRow{jsonPatchRows, mergePatchRows, strategicPatchRows, deadlyPatchRows} {
		for _, row := range rows {
			add(row.media, row.on, row.patch)
		}
	}
	for _, row := range fieldRows {
		add(row.how, row.on, row.body)
	}
	h := newHarness(f, rest.Options{}, nothingStays)
	patchFixture(h)
	f.Fuzz(func(t *testing.T, body []byte, kind, target uint8, ignore bool) {
		h := *h
		h.t = t
		on, query := patchTargets[int(target)%len(patchTargets)], ""
		if ignore {
			query = "?fieldValidation=Ignore"
		}
		a, now := fuzzSend(t, &h, on, query, patchMedia[kinds[int(kind)%len(kinds)]], body)
		if a.code >= 400 {
			return
		}
		if !strings.Contains(on, "/") && now.body != a.body && now.code != 404 {
			t.Fatalf("the answer is not what is stored:\n%s\n%s", a.body, now.body)
		}
		checkWhole(t, a)
		if now.code == 200 {
			restorePatched(t, &h, on)
		}
	})
}

// checkWhole makes sure that a patched object still says what it is.
func checkWhole(t *testing.T, a answer) {
	t.Helper()
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace, UID, ResourceVersion, CreationTimestamp string }
	}
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	m := object.Metadata
	if object.APIVersion == "" || object.Kind == "" || m.Name == "" || m.Namespace != "fuzz" || m.UID == "" || m.ResourceVersion == "" || m.CreationTimestamp == "" {
		t.Fatalf("not whole: %s", a.body)
	}
}
