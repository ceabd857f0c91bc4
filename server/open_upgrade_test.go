package server

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

// goneSince133 are the versions that a plinth of Kubernetes 1.33 serves with api/all=true, and this one does not.
var goneSince133 = []string{
	"admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies",
	"admissionregistration.k8s.io/v1beta1/validatingadmissionpolicybindings",
	"certificates.k8s.io/v1alpha1/clustertrustbundles",
	"networking.k8s.io/v1beta1/ipaddresses",
	"networking.k8s.io/v1beta1/servicecidrs",
	"resource.k8s.io/v1alpha3/deviceclasses",
	"resource.k8s.io/v1alpha3/resourceclaims",
	"resource.k8s.io/v1alpha3/resourceclaimtemplates",
	"resource.k8s.io/v1alpha3/resourceslices",
	"storage.k8s.io/v1alpha1/volumeattributesclasses",
	"storage.k8s.io/v1beta1/volumeattributesclasses",
	"storagemigration.k8s.io/v1alpha1/storageversionmigrations",
}

// migrations133 is the one resource whose objects 1.33 stores in a version that this release cannot read.
var migrations133 = schema.GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}

// objectsOf are the objects of a list by namespace and name.
type objectsOf map[[2]string]*unstructured.Unstructured

// past133 is a server on a database that the last plinth of Kubernetes 1.33 has written, and what that plinth answered;
// testdata/v1.33/fill.sh has made both.
type past133 struct {
	client
	s       *Server
	lists   map[schema.GroupVersionResource]objectsOf
	history map[string]string // answers, by path
}

// TestOldDatabase: what the last plinth of Kubernetes 1.33 has written is there with this one and means the same, in
// each version that is served; an update stores it in today's version, old versions of it can still be read, and it can
// be deleted. What cannot be read any more keeps nobody from anything else.
func TestOldDatabase(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		logtest.Exec(t, dsn, unpacked(t, d.Name+".sql.gz"))
		old := past133{lists: map[schema.GroupVersionResource]objectsOf{}, history: map[string]string{}}
		for line := range strings.Lines(unpacked(t, d.Name+".answers.gz")) {
			path, answer, _ := strings.Cut(line, " ")
			if strings.HasPrefix(path, "/apis/history.plinth.io/") {
				old.history[path] = answer
				continue
			}
			old.lists[resourceOf(path)] = listed(t, answer)
		}
		old.start(t, dsn)
		unreadable133(t, dsn)
		old.compareHistory(true)
		old.compare()
		old.update()
		old.compare()
		must(t, old.s.Close())

		old.start(t, dsn, "svm")
		old.compare()
		old.compareHistory(false)
		old.migrate("classes", "resource.k8s.io", "deviceclasses", "Migration completed", "StorageVersionMigrationSucceeded")
		old.storedToday(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"})
		unreadable133(t, dsn)
		old.delete()
	})
}

// unpacked reads a file that fill.sh has made.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("testdata/v1.33/" + name)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	return string(text)
}

func resourceOf(path string) schema.GroupVersionResource {
	parts := strings.Split(path, "/")
	if parts[1] == "api" {
		return schema.GroupVersionResource{Version: parts[2], Resource: parts[3]}
	}
	return schema.GroupVersionResource{Group: parts[2], Version: parts[3], Resource: parts[4]}
}

func listed(t *testing.T, list string) objectsOf {
	t.Helper()
	var all struct{ Items []map[string]any }
	must(t, json.Unmarshal([]byte(list), &all))
	objects := objectsOf{}
	for _, o := range all.Items {
		u := &unstructured.Unstructured{Object: o}
		objects[[2]string{u.GetNamespace(), u.GetName()}] = u
	}
	return objects
}

// unreadable133 looks for damage: there is none, and two objects are in a version that nothing reads any more.
func unreadable133(t *testing.T, dsn string) {
	t.Helper()
	source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
	must(t, err)
	defer source.Close()
	var found []string
	_, err = scrub.Log(t.Context(), source, scrub.Options{Served: builtin.CheckStored, Found: func(p scrub.Problem) { found = append(found, p.String()) }})
	must(t, err)
	for i, name := range []string{"test-migration", "done"} {
		if len(found) != 2 || !strings.Contains(found[i], "StorageVersionMigration "+name+" is stored in storagemigration.k8s.io/v1alpha1, which Kubernetes 1.37 does not know") {
			t.Errorf("problems: %q", found)
		}
	}
}

func (p *past133) start(t *testing.T, dsn string, controllers ...string) {
	t.Helper()
	rules, err := changelog.ParseRules("*=100") // as fill.sh has it
	must(t, err)
	p.s = start(t, Config{DSN: dsn, RuntimeConfig: map[string]string{"api/all": "true"}, Keep: changelog.NewRetention(rules...), EventTTL: -1, Controllers: controllers})
	p.client = clientOf(t, p.s)
}

// served are the versions in which a resource is served now, the preferred one first.
func (p *past133) served(gr schema.GroupResource) (versions []string, is *kind.Kind) {
	p.t.Helper()
	for _, k := range p.s.kinds.Set().Kinds { // custom resources have a Kind for each version
		if k.GroupResource() == gr {
			is = cmp.Or(is, k)
			for _, v := range k.Versions {
				versions = append(versions, v.Name)
			}
		}
	}
	if is == nil {
		p.t.Fatalf("%s is not served", gr)
	}
	return versions, is
}

// resources are those of which the old plinth had objects, and this one can read them; namespaces and definitions come
// last, as other objects go with them.
func (p *past133) resources() []schema.GroupResource {
	all := map[schema.GroupResource]bool{}
	for gvr, objects := range p.lists {
		if gvr.GroupResource() != migrations133 && len(objects) > 0 {
			all[gvr.GroupResource()] = true
		}
	}
	last := func(gr schema.GroupResource) string {
		if gr.Resource == "namespaces" || gr.Resource == "customresourcedefinitions" {
			return "1"
		}
		return "0"
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupResource) int {
		return cmp.Compare(last(a)+a.String(), last(b)+b.String())
	})
}

// pathOf is the path of a collection or, if o is not nil, of an object.
func pathOf(gvr schema.GroupVersionResource, o *unstructured.Unstructured) string {
	path := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = "/api/" + gvr.Version
	}
	if o != nil && o.GetNamespace() != "" {
		path += "/namespaces/" + o.GetNamespace()
	}
	path += "/" + gvr.Resource
	if o != nil {
		path += "/" + o.GetName()
	}
	return path
}

// users tells whether an object is one of fill.sh's, and not of those that a server makes and changes.
func users(o *unstructured.Unstructured) bool { return o.GetLabels()["changed"] == "once" }

// addedSince133 are the fields that an object of 1.33 has in addition, once this plinth has written it.
var addedSince133 = []string{
	"CSIDriver spec.preventPodSchedulingIfMissing",
	"StatefulSet spec.updateStrategy.rollingUpdate.maxUnavailable",
}

// compare reads each resource in each version, and compares what the old plinth answered in the same version.
func (p *past133) compare() {
	p.t.Helper()
	var gone []string
	for gvr, before := range p.lists {
		if versions, _ := p.served(gvr.GroupResource()); !slices.Contains(versions, gvr.Version) {
			gone = append(gone, gvr.GroupVersion().String()+"/"+gvr.Resource)
			continue
		}
		_, k := p.served(gvr.GroupResource())
		now := listed(p.t, p.do("GET", pathOf(gvr, nil), "", http.StatusOK))
		for name, o := range before {
			if !users(o) {
				continue
			}
			if now[name] == nil {
				p.t.Errorf("%s: %v is not there", gvr, name)
				continue
			}
			was, is := meaning(o), meaning(now[name])
			dropAdded(was, is, k.Kind+" ")
			if d := diff.Diff(was, is); d != "" {
				p.t.Errorf("%s: %v is another: %s", gvr, name, d)
			}
		}
	}
	slices.Sort(gone)
	if d := diff.Diff(goneSince133, gone); d != "" {
		p.t.Errorf("versions that are not served any more: %s", d)
	}
	for _, gr := range p.resources() {
		versions, _ := p.served(gr)
		for _, v := range versions {
			now := listed(p.t, p.do("GET", pathOf(gr.WithVersion(v), nil), "", http.StatusOK))
			for name, o := range p.before(gr) {
				if now[name] == nil || now[name].GetUID() != o.GetUID() {
					p.t.Errorf("%s in %s: %v is not there", gr, v, name)
				}
			}
		}
	}
}

// dropAdded removes from is what was does not have and addedSince133 names. at is the kind and the path of both.
func dropAdded(was, is map[string]any, at string) {
	for name, v := range is {
		old, there := was[name]
		if !there && slices.Contains(addedSince133, at+name) {
			delete(is, name)
		}
		if old, ok := old.(map[string]any); ok {
			if v, ok := v.(map[string]any); ok {
				dropAdded(old, v, at+name+".")
			}
		}
	}
}

// before are the users' objects of a resource, in some version.
func (p *past133) before(gr schema.GroupResource) objectsOf {
	for gvr, objects := range p.lists {
		if gvr.GroupResource() == gr {
			objects = maps.Clone(objects)
			maps.DeleteFunc(objects, func(_ [2]string, o *unstructured.Unstructured) bool { return !users(o) })
			return objects
		}
	}
	return nil
}

// meaning is an object without what update changes, and without fields that say nothing: 1.33 has null where later
// releases leave an empty field out, and these an empty status where 1.33 has none.
func meaning(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0) // which some kinds have for labels, too
	labels := o.GetLabels()
	delete(labels, "upgraded")
	o.SetLabels(labels)
	if status, ok := o.Object["status"].(map[string]any); ok && len(status) == 0 {
		delete(o.Object, "status")
	}
	return withoutNull(o.Object).(map[string]any)
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, v any) bool { return v == nil })
		for name := range v {
			v[name] = withoutNull(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

// notUpdated is left for a migration.
var notUpdated = schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}

// update writes each object in the preferred version and before, as a dry run, in the others: an older version may change
// the order of lists.
func (p *past133) update() {
	p.t.Helper()
	for _, gr := range p.resources() {
		versions, _ := p.served(gr)
		if gr == notUpdated {
			continue
		}
		for _, before := range p.before(gr) {
			for _, v := range versions[1:] {
				p.put(pathOf(gr.WithVersion(v), before), "?dryRun=All")
			}
			p.put(pathOf(gr.WithVersion(versions[0]), before), "")
		}
		p.storedToday(gr)
	}
}

func (p *past133) put(path, options string) {
	p.t.Helper()
	var o unstructured.Unstructured
	must(p.t, json.Unmarshal([]byte(p.do("GET", path, "", http.StatusOK)), &o.Object))
	labels := o.GetLabels()
	labels["upgraded"] = "true"
	o.SetLabels(labels)
	body, err := json.Marshal(o.Object)
	must(p.t, err)
	p.do("PUT", path+options, string(body), http.StatusOK)
}

// storedToday checks that all objects of a resource are stored in the version in which this release stores.
func (p *past133) storedToday(gr schema.GroupResource) {
	p.t.Helper()
	_, k := p.served(gr)
	head := string(kind.HeadOf(k.StoredGVK()))
	for name := range p.before(gr) {
		if e := p.s.store.Get(k.Key(name[0], name[1])); e == nil || !strings.HasPrefix(string(e.Value), head) {
			p.t.Errorf("%s %v is not stored as %s", gr, name, head)
		}
	}
}

// compareHistory reads the history that the old plinth has shown. It is the end of what there is, and at first all.
func (p *past133) compareHistory(all bool) {
	p.t.Helper()
	for path, answer := range p.history {
		var before, now struct{ Items []map[string]any }
		must(p.t, json.Unmarshal([]byte(answer), &before))
		must(p.t, json.Unmarshal([]byte(p.do("GET", path, "", http.StatusOK)), &now))
		more := len(now.Items) - len(before.Items)
		if more < 0 || more > 0 == all {
			p.t.Fatalf("%s has %d items, and had %d", path, len(now.Items), len(before.Items))
		}
		for i, is := range now.Items[more:] {
			was := before.Items[i]
			maps.DeleteFunc(is, func(field string, _ any) bool { _, known := was[field]; return !known }) // this plinth tells more
			if d := diff.Diff(was, is); d != "" {
				p.t.Errorf("%s: item %d: %s", path, i, d)
			}
		}
	}
}

// delete deletes each object. Some wait for a controller to let go of them.
func (p *past133) delete() {
	p.t.Helper()
	for _, gr := range p.resources() {
		if gr.Group == "events.k8s.io" { // they are core Events, too
			continue
		}
		versions, _ := p.served(gr)
		for name, o := range p.before(gr) {
			path := pathOf(gr.WithVersion(versions[0]), o)
			code, _, answer := apitest.Do(p.t, p.http, "DELETE", p.url+path+"?gracePeriodSeconds=0", "")
			if code != http.StatusOK {
				p.t.Errorf("DELETE %s: %d %s", path, code, answer)
			}
			code, _, answer = apitest.Do(p.t, p.http, "GET", p.url+path, "")
			if code != http.StatusNotFound && !strings.Contains(answer, `"deletionTimestamp"`) {
				p.t.Errorf("%s %v is still there: %d %s", gr, name, code, answer)
			}
		}
	}
	for _, o := range p.before(migrations133) {
		path := pathOf(migrations133.WithVersion("v1"), o)
		if answer := p.do("GET", path, "", http.StatusInternalServerError); !strings.Contains(answer, `no kind \"StorageVersionMigration\" is registered for version \"storagemigration.k8s.io/v1alpha1\"`) {
			p.t.Errorf("GET %s: %s", path, answer)
		}
		past := "/apis/history.plinth.io/v1/versions?fieldSelector=object.resource%3Dstorageversionmigrations.storagemigration.k8s.io,object.name%3D" + o.GetName()
		if answer := p.do("GET", past, "", http.StatusOK); !strings.Contains(answer, `"data":{"kind":"StorageVersionMigration","apiVersion":"storagemigration.k8s.io/v1alpha1"`) {
			p.t.Errorf("GET %s: %s", past, answer)
		}
		p.do("DELETE", path+"?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", http.StatusOK)
	}
	if now := listed(p.t, p.do("GET", pathOf(migrations133.WithVersion("v1"), nil), "", http.StatusOK)); len(now) != 1 {
		p.t.Errorf("%d migrations are there", len(now))
	}
}
