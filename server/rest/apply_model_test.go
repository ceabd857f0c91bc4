package rest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plinth-io/plinth/server/rest"
)

// This is the property test of managed fields. Managers write a Deployment at random. After each
// write the server and a simple model must agree on the value and the managers of each field. The
// model knows some leaves, and the list items that contain them. Of all other managed fields the
// test checks only that they exist.

// applyLeaf is a field of the Deployment that the model knows.
type applyLeaf struct {
	path   string // as in managedFields
	values []any  // that it can have
	at     []applyHop
	items  []applyItem // that it is in, the outermost first
	in     string      // the map or list that it, or the item that it is in, is one of; if it can be empty
}

// applyItem is an item of a list with a key.
type applyItem struct {
	path string
	at   []applyHop
}

// applyHop is a step on the way to a leaf: a field, and for a list which item of it. An
// item without a key is the leaf.
type applyHop struct{ field, key, item string }

func leafAt(values []any, at ...applyHop) applyLeaf {
	l := applyLeaf{values: values, at: at}
	for i, hop := range at {
		if l.path += "." + hop.field; collections[hop.field] {
			l.in = l.path
		}
		switch {
		case hop.key != "":
			l.path += fmt.Sprintf("[%s=%q]", hop.key, hop.item)
			l.items = append(l.items, applyItem{l.path, at[:i+1]})
		case hop.item != "":
			l.path += fmt.Sprintf("[=%q]", hop.item)
		}
	}
	return l
}

// collections are maps and lists that are managed as a whole by the managers that created them.
// These managers keep them when others have removed all items, so that the collection is absent.
var collections = map[string]bool{"labels": true, "annotations": true, "finalizers": true, "conditions": true, "env": true}

func texts(values ...any) []any { return values }

var applyLeaves = func() (leaves []applyLeaf) {
	metadata, spec, status := applyHop{field: "metadata"}, applyHop{field: "spec"}, applyHop{field: "status"}
	pod := []applyHop{spec, {field: "template"}, spec}
	for i := range 3 {
		n := fmt.Sprint(i)
		leaves = append(leaves,
			leafAt(texts("1", "2"), metadata, applyHop{field: "labels"}, applyHop{field: "l" + n}),
			leafAt(texts("1", "2"), metadata, applyHop{field: "annotations"}, applyHop{field: "a" + n}),
			leafAt(texts("x.io/f"+n), metadata, applyHop{field: "finalizers", item: "x.io/f" + n}),
			leafAt(texts("True", "False"), status, applyHop{"conditions", "type", "T" + n}, applyHop{field: "status"}))
	}
	for _, name := range []string{"main", "c1", "c2"} {
		in := append(slices.Clone(pod), applyHop{"containers", "name", name})
		in = slices.Clip(in)
		leaves = append(leaves,
			leafAt(texts("i1", "i2"), append(in, applyHop{field: "image"})...),
			leafAt(texts(texts("x"), texts("y", "z")), append(in, applyHop{field: "args"})...),
			leafAt(texts("1", "2"), append(in, applyHop{"env", "name", "E1"}, applyHop{field: "value"})...),
			leafAt(texts("1", "2"), append(in, applyHop{"env", "name", "E2"}, applyHop{field: "value"})...))
	}
	return append(leaves,
		leafAt(texts(2.0, 3.0), spec, applyHop{field: "replicas"}),
		leafAt(texts(1.0, 2.0), status, applyHop{field: "replicas"}),
		leafAt(texts(map[string]any{"a": "1"}, map[string]any{"a": "2", "b": "1"}), append(pod, applyHop{field: "nodeSelector"})...))
}()

func (l *applyLeaf) status() bool { return l.at[0].field == "status" }

// container is the container that the leaf is in, "" if none.
func (l *applyLeaf) container() string {
	if len(l.at) > 3 && l.at[3].field == "containers" {
		return l.at[3].item
	}
	return ""
}

// read finds what is at the end of a way; nil if it is absent.
func read(object map[string]any, at []applyHop) any {
	for i, hop := range at {
		v := object[hop.field]
		if hop.item != "" {
			v = itemOf(v, hop)
		}
		if i == len(at)-1 {
			return v
		}
		object, _ = v.(map[string]any)
	}
	return nil
}

func itemOf(list any, hop applyHop) any {
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && m[hop.key] == hop.item || item == hop.item {
			return item
		}
	}
	return nil
}

// put sets the leaf, and makes what it is in.
func (l *applyLeaf) put(object map[string]any, value any) {
	for i, hop := range l.at {
		last := i == len(l.at)-1
		switch {
		case hop.item == "" && last:
			object[hop.field] = value
		case hop.item == "":
			if object[hop.field] == nil {
				object[hop.field] = map[string]any{}
			}
			object = object[hop.field].(map[string]any)
		case itemOf(object[hop.field], hop) == nil:
			var item any = hop.item
			if hop.key != "" {
				item = map[string]any{hop.key: hop.item}
			}
			list, _ := object[hop.field].([]any)
			object[hop.field] = append(list, item)
			fallthrough
		default:
			object, _ = itemOf(object[hop.field], hop).(map[string]any)
		}
	}
}

// drop removes the leaf, and the item that it is in unless that is a container.
func (l *applyLeaf) drop(object map[string]any) {
	for i, hop := range l.at {
		if last := i == len(l.at)-1; hop.item != "" && (last || l.dropsItem() && i == len(l.at)-2) {
			items, _ := object[hop.field].([]any)
			gone := itemOf(items, hop)
			object[hop.field] = slices.DeleteFunc(items, func(item any) bool { return reflect.DeepEqual(item, gone) })
			return
		} else if last {
			delete(object, hop.field)
			return
		}
		if object, _ = read(object, l.at[i:i+1]).(map[string]any); object == nil {
			return
		}
	}
}

func (l *applyLeaf) dropsItem() bool {
	return len(l.items) > 0 && l.at[len(l.at)-2].item != "" && l.at[len(l.at)-2].field != "containers"
}

// applyModel is the expected state of the Deployment.
type applyModel struct {
	values  map[string]any             // by path; those of items say nothing
	owners  map[string]map[string]bool // by path; "alice Apply", "alice Update status", …
	tracked bool                       // false after a reset
}

func (m *applyModel) clone() *applyModel {
	c := &applyModel{maps.Clone(m.values), map[string]map[string]bool{}, m.tracked}
	for path, who := range m.owners {
		c.owners[path] = maps.Clone(who)
	}
	return c
}

// update is any write but an apply. The writer becomes the only manager of the fields that it
// changes. A nil removes a field.
func (m *applyModel) update(who string, edits map[string]any) {
	before := maps.Clone(m.values)
	for i := range applyLeaves {
		l := &applyLeaves[i]
		v, ok := edits[l.path]
		switch {
		case !ok:
		case v == nil && l.path == ".spec.replicas":
			m.set(who, l.path, 1.0)
			if m.values[l.path] != 1.0 {
				panic("no default")
			}
		case v == nil && l.dropsItem():
			m.remove(l.items[len(l.items)-1].path)
		case v == nil:
			m.remove(l.path)
		default:
			for _, item := range l.items {
				m.set(who, item.path, "an item")
			}
			m.set(who, l.path, v)
		}
	}
	for path := range m.settle() {
		switch {
		case before[path] == nil && m.values[path] != nil && m.tracked:
			m.owners[path] = map[string]bool{who: true}
		case before[path] != nil && m.values[path] == nil:
			delete(m.owners, path)
		}
	}
}

// settle finds out which maps and lists are empty, and therefore absent. It returns all of them.
func (m *applyModel) settle() map[string]bool {
	all := map[string]bool{}
	for i := range applyLeaves {
		path := applyLeaves[i].in
		if path == "" || all[path] {
			continue
		}
		all[path] = true
		delete(m.values, path)
		for p := range m.values {
			if strings.HasPrefix(p, path) {
				m.values[path] = "a map or list"
				break
			}
		}
	}
	return all
}

// set is an update of one field.
func (m *applyModel) set(who, path string, v any) {
	if reflect.DeepEqual(m.values[path], v) {
		return
	}
	m.values[path] = v
	if delete(m.owners, path); m.tracked {
		m.owners[path] = map[string]bool{who: true}
	}
}

// remove removes a field and the fields in it for all managers.
func (m *applyModel) remove(path string) {
	maps.DeleteFunc(m.values, func(p string, _ any) bool { return strings.HasPrefix(p, path) })
	maps.DeleteFunc(m.owners, func(p string, _ map[string]bool) bool { return strings.HasPrefix(p, path) })
	if path == ".spec.replicas" {
		m.values[path] = 1.0
	}
}

// apply returns the conflicts, as "manager field".
func (m *applyModel) apply(who string, config map[string]any, force bool) (conflicts []string) {
	if !m.tracked {
		m.tracked = true
		for path := range m.values {
			m.own(path, "before-first-apply Update")
		}
	}
	for path, v := range config {
		if m.values[path] == nil || reflect.DeepEqual(m.values[path], v) {
			continue
		}
		for other := range m.owners[path] {
			if other != who {
				conflicts = append(conflicts, strings.Fields(other)[0]+" "+path)
			}
		}
	}
	empty := m.empty(config)
	for path := range empty {
		for other := range m.owners[path] {
			conflicts = append(conflicts, strings.Fields(other)[0]+" "+path)
		}
	}
	if len(conflicts) > 0 && !force {
		return conflicts
	}
	for path, others := range m.owners {
		if !others[who] || config[path] != nil {
			continue
		}
		if delete(others, who); len(others) == 0 {
			m.remove(path) // an item goes with all that others have in it
		}
	}
	for path, v := range config {
		if !reflect.DeepEqual(m.values[path], v) {
			delete(m.owners, path)
		}
		m.values[path] = v
		m.own(path, who)
	}
	maps.DeleteFunc(m.owners, func(path string, _ map[string]bool) bool { return empty[path] })
	m.settle()
	return nil
}

// empty are the absent maps and lists that config adds items to. The managers that created them
// still have them.
func (m *applyModel) empty(config map[string]any) map[string]bool {
	empty := map[string]bool{}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if l.in != "" && config[l.path] != nil && m.values[l.in] == nil {
			empty[l.in] = true
		}
	}
	return empty
}

// valid tells whether every container has an image.
func (m *applyModel) valid() bool {
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if l.container() == "" {
			continue
		}
		if c := l.items[0].path; m.values[c] != nil && m.values[c+".image"] == nil {
			return false
		}
	}
	return true
}

// hasStatus tells whether the Deployment has a status. If so, the game does not reset managed
// fields: as in kube-apiserver, fields of the status without a manager would be lost with the last
// field that a manager gives up.
func (m *applyModel) hasStatus() bool {
	for path := range m.values {
		if strings.HasPrefix(path, ".status") {
			return true
		}
	}
	return false
}

// String lists values and managers.
func (m *applyModel) String() string {
	var lines []string
	paths := maps.Clone(m.values)
	for path := range m.owners {
		paths[path] = m.values[path]
	}
	for path, v := range paths {
		value, _ := json.Marshal(v)
		lines = append(lines, fmt.Sprintf("%s = %s %q", path, value, slices.Sorted(maps.Keys(m.owners[path]))))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// modelOf reads what the server says into a model.
func modelOf(t *testing.T, body string) *applyModel {
	m := &applyModel{values: map[string]any{}, owners: map[string]map[string]bool{}}
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatal(err)
	}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if v := read(object, l.at); v != nil && !reflect.DeepEqual(v, "") { // of a condition, an empty status is none
			m.values[l.path] = v
		}
		for _, item := range l.items {
			if read(object, item.at) != nil {
				m.values[item.path] = "an item"
			}
		}
	}
	seen := map[string]bool{}
	m.settle()
	for _, e := range managedFields(t, body) {
		who := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource))
		if seen[who] || e.APIVersion != "apps/v1" {
			t.Errorf("%s %s: twice, or of another version", who, e.APIVersion)
		}
		seen[who] = true
		set := fieldSet(t, e)
		if set.Empty() {
			t.Errorf("%s has an entry without fields", who)
		}
		set.Iterate(func(p fieldpath.Path) {
			if path := p.String(); !exists(object, p) && !slices.ContainsFunc(applyLeaves, func(l applyLeaf) bool { return l.in == path }) {
				t.Errorf("%s manages %s, which does not exist", who, p)
			}
			if path := p.String(); known[path] {
				m.own(path, who)
			}
		})
	}
	m.tracked = len(seen) > 0
	return m
}

// known are the paths that the model knows.
var known = func() map[string]bool {
	paths := map[string]bool{}
	for _, l := range applyLeaves {
		paths[l.path], paths[l.in] = true, true
		for _, item := range l.items {
			paths[item.path] = true
		}
	}
	return paths
}()

func (m *applyModel) own(path, who string) {
	if m.owners[path] == nil {
		m.owners[path] = map[string]bool{}
	}
	m.owners[path][who] = true
}

// exists finds a path of managedFields in an object.
func exists(at any, p fieldpath.Path) bool {
	for _, e := range p {
		switch {
		case e.FieldName != nil:
			object, ok := at.(map[string]any)
			if !ok {
				return false
			}
			if at, ok = object[*e.FieldName]; !ok {
				return false
			}
		case e.Key != nil, e.Value != nil:
			items, _ := at.([]any)
			i := slices.IndexFunc(items, func(item any) bool { return isItem(item, e) })
			if i < 0 {
				return false
			}
			at = items[i]
		default:
			return false // nothing here is managed by its index
		}
	}
	return true
}

func isItem(item any, e fieldpath.PathElement) bool {
	if e.Value != nil {
		return reflect.DeepEqual(item, (*e.Value).Unstructured())
	}
	object, ok := item.(map[string]any)
	for _, key := range *e.Key {
		ok = ok && object[key.Name] == key.Value.Unstructured()
	}
	return ok
}

// applyGame plays random writes against the server and the model.
type applyGame struct {
	*harness
	t         *testing.T
	rand      *rand.Rand
	namespace string
	model     *applyModel
	played    []string
	applies   []randomApply // the last few
}

type randomApply struct {
	manager string
	status  bool
	config  map[string]any
	force   bool
}

var applySeed = flag.Uint64("apply.seed", 0, "the one game that TestApplyModel plays; 0: others each time, for 3 seconds")

// TestApplyModel plays random games. A failure names the seed that plays the same game again.
func TestApplyModel(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		if *applySeed != 0 {
			playApplyGame(t, h, *applySeed, 40)
			return
		}
		seed := uint64(time.Now().UnixNano())
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end) && !t.Failed(); seed++ {
			playApplyGame(t, h, seed, 40)
		}
	})
}

func playApplyGame(t *testing.T, h *harness, seed uint64, rounds int) {
	here := *h
	here.t = t
	g := &applyGame{harness: &here, t: t, rand: rand.New(rand.NewPCG(seed, 0)), namespace: fmt.Sprint("apply-", seed)}
	base := map[string]any{`.spec.template.spec.containers[name="main"].image`: "i1"}
	created := g.send("apply d as base", base, nil).want(201)
	g.model = modelOf(t, created.body)
	for range rounds {
		g.round()
		if t.Failed() {
			t.Fatalf("-apply.seed=%d:\n%s", seed, strings.Join(g.played, "\n"))
		}
	}
}

// send writes the object that has the fields, or the body if there is one.
func (g *applyGame) send(do string, fields map[string]any, body map[string]any) answer {
	if body == nil {
		body = map[string]any{}
		if err := json.Unmarshal([]byte(depOf("", "")), &body); err != nil {
			g.t.Fatal(err)
		}
		if strings.HasSuffix(do, "as base") {
			if err := json.Unmarshal([]byte(depOf("", `"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}`)), &body); err != nil {
				g.t.Fatal(err)
			}
		}
		for i := range applyLeaves {
			if l := &applyLeaves[i]; fields[l.path] != nil {
				l.put(body, fields[l.path])
			}
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.doStep(g.namespace, applyStep{do: do, body: string(text)})
}

// round is one write, after which the server and the model must agree.
func (g *applyGame) round() {
	next := g.model.clone()
	var a answer
	var conflicts []string
	sub, status := "", g.model.tracked && g.rand.IntN(4) == 0
	trace := func(do string, fields map[string]any) string {
		text, _ := json.Marshal(fields)
		g.played = append(g.played, do+" "+string(text))
		return do
	}
	if status {
		sub = "/status"
	}
	manager := []string{"alice", "bob", "carol"}[g.rand.IntN(3)]
	switch n := g.rand.IntN(20); {
	case n < 11:
		x := g.nextApply(manager, status)
		if sub = ""; x.status {
			sub = "/status"
		}
		conflicts = next.apply(strings.TrimSpace(x.manager+" Apply "+strings.TrimPrefix(sub, "/")), x.config, x.force)
		a = g.send(trace(fmt.Sprintf("apply d%s as %s force=%v", sub, x.manager, x.force), x.config), x.config, nil)
	case n == 11 && !g.model.hasStatus():
		next.owners, next.tracked = map[string]map[string]bool{}, false
		a = g.send(trace("merge d as "+manager, nil), nil, map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}}})
	case n < 14:
		edits := g.edits(func(l *applyLeaf) bool { return l.status() == status && isGranular(l) })
		next.update(strings.TrimSpace(manager+" Update "+strings.TrimPrefix(sub, "/")), edits)
		a = g.send(trace(fmt.Sprintf("%s d%s as %s", []string{"merge", "smp"}[g.rand.IntN(2)], sub, manager), edits), nil, mergePatch(edits))
	default:
		edits := g.edits(func(l *applyLeaf) bool { return l.status() == status })
		next.update(strings.TrimSpace(manager+" Update "+strings.TrimPrefix(sub, "/")), edits)
		a = g.send(trace(fmt.Sprintf("put d%s as %s", sub, manager), edits), nil, g.edited(edits))
	}
	g.compare(next, a, conflicts)
}

// nextApply is a new apply or, as controllers do, one of the last applies again.
func (g *applyGame) nextApply(manager string, status bool) randomApply {
	if n := len(g.applies); n > 0 && g.model.tracked && g.rand.IntN(3) == 0 {
		return g.applies[g.rand.IntN(n)]
	}
	x := randomApply{manager, status, g.pick(status), g.rand.IntN(3) == 0}
	g.applies = append(g.applies[max(0, len(g.applies)-2):], x)
	return x
}

// pick chooses the fields to apply. A container is applied with its image.
func (g *applyGame) pick(status bool) map[string]any {
	config := map[string]any{}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if l.status() != status || g.rand.IntN(3) > 0 {
			continue
		}
		config[l.path] = l.values[g.rand.IntN(len(l.values))]
		for _, item := range l.items {
			config[item.path] = "an item"
		}
		if l.container() != "" && config[l.items[0].path+".image"] == nil {
			config[l.items[0].path+".image"] = []any{"i1", "i2"}[g.rand.IntN(2)]
		}
	}
	return config
}

// edits chooses changes of a few fields; nil removes one.
func (g *applyGame) edits(which func(*applyLeaf) bool) map[string]any {
	edits := map[string]any{}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if !which(l) || g.rand.IntN(5) > 0 {
			continue
		}
		edits[l.path] = l.values[g.rand.IntN(len(l.values))]
		if g.rand.IntN(3) == 0 {
			edits[l.path] = nil
		}
	}
	return edits
}

func isGranular(l *applyLeaf) bool {
	return len(l.at) < 4 && l.at[len(l.at)-1].item == "" && !strings.Contains(l.path, "[")
}

func mergePatch(edits map[string]any) map[string]any {
	patch := map[string]any{}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		if v, ok := edits[l.path]; ok {
			l.put(patch, v)
		}
	}
	return patch
}

// edited is the stored object with the edits. Some clients send it without managed fields.
func (g *applyGame) edited(edits map[string]any) map[string]any {
	var object map[string]any
	current := g.doStep(g.namespace, applyStep{do: "get d"}).want(200)
	if err := json.Unmarshal([]byte(current.body), &object); err != nil {
		g.t.Fatal(err)
	}
	if g.rand.IntN(2) == 0 {
		delete(object["metadata"].(map[string]any), "managedFields")
	}
	for i := range applyLeaves {
		l := &applyLeaves[i]
		v, ok := edits[l.path]
		switch {
		case ok && v == nil:
			l.drop(object)
		case ok:
			l.put(object, v)
		}
	}
	return object
}

// compare checks the answer, and compares the stored object with the model.
func (g *applyGame) compare(next *applyModel, a answer, conflicts []string) {
	g.t.Helper()
	switch {
	case len(conflicts) > 0:
		a.want(409)
		var got []string
		for _, c := range causesOf(g.t, a) {
			got = append(got, strings.Split(c.Message, `"`)[1]+" "+c.Field)
		}
		sort.Strings(got)
		sort.Strings(conflicts)
		if !slices.Equal(got, conflicts) {
			g.t.Errorf("conflicts %q, want %q", got, conflicts)
		}
	case !next.valid():
		a.want(422)
	default:
		a.want(200)
		g.model = next
	}
	stored := g.doStep(g.namespace, applyStep{do: "get d"}).want(200)
	if a.code == 200 && a.body != stored.body {
		g.t.Errorf("stored\n%s, answered\n%s", stored.body, a.body)
	}
	got := modelOf(g.t, stored.body)
	if got.String() != g.model.String() || got.tracked != g.model.tracked {
		g.t.Errorf("got (%v)\n%s\nwant (%v)\n%s", got.tracked, got, g.model.tracked, g.model)
	}
}

// cause is one of a Status.
type cause struct{ Reason, Field, Message string }

func causesOf(t testing.TB, a answer) []cause {
	t.Helper()
	var s struct{ Details struct{ Causes []cause } }
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatal(err)
	}
	return s.Details.Causes
}
