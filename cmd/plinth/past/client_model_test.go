package past

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// lived is a random history: what was there at each revision, and which revision gave each field of the
// data its value.
type lived struct {
	*fixture
	*rand.Rand
	kind      string
	at        map[string]map[string]*unstructured.Unstructured // by revision, then name
	revisions []string
	there     map[string]*unstructured.Unstructured
	owners    map[string]map[string]string // by name, then field: revision
}

// TestModel plays random histories and compares each object and each list at every revision, each blame
// at the end, and what undo and undelete bring back, with what was there.
func TestModel(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		playModels(t, start(t, servertest.Options{DSN: d.Fresh(t)}))
	})
}

func playModels(t *testing.T, f *fixture) {
	for seed, kind := range []string{"configmaps", "clusterroles"} {
		t.Run(kind, func(t *testing.T) {
			f := *f
			f.T = t
			m := &lived{fixture: &f, Rand: rand.New(rand.NewPCG(uint64(seed), 2)), kind: kind,
				at: map[string]map[string]*unstructured.Unstructured{}, there: map[string]*unstructured.Unstructured{}, owners: map[string]map[string]string{}}
			for range 80 {
				m.step()
			}
			m.compareStates()
			m.compareBlame()
		})
	}
}

func (m *lived) step() {
	m.Helper()
	t := m.target(m.kind, fmt.Sprintf("model-%d", m.IntN(4)))
	object := m.there[t.Name]
	switch {
	case object == nil && len(m.revisions) > 0 && m.IntN(2) == 0:
		m.undelete(t)
	case object == nil:
		m.owners[t.Name] = map[string]string{}
		m.note(t, m.create(m.c, m.kind, m.begin(t.Name)))
	case m.IntN(6) == 0:
		m.remove(m.c, t)
		m.there[t.Name] = nil
		m.noteDeletion(t)
	case m.IntN(4) == 0:
		m.undo(t)
	default:
		m.note(t, m.change(m.c, t, m.changeField))
	}
}

func (m *lived) begin(name string) string {
	if m.kind == "configmaps" {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name)
	}
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: []}", name)
}

// changeField changes a label, which all kinds have.
func (m *lived) changeField(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	key := fmt.Sprintf("l%d", m.IntN(4))
	if _, there := labels[key]; there && m.IntN(3) == 0 {
		delete(labels, key)
	} else {
		labels[key] = fmt.Sprintf("v%d", m.Int())
	}
	o.SetLabels(labels)
}

// note records a write.
func (m *lived) note(t Target, object *unstructured.Unstructured) {
	was := map[string]string{}
	if old := m.there[t.Name]; old != nil {
		was = old.GetLabels()
	} else {
		m.owners[t.Name] = map[string]string{}
	}
	owners := m.owners[t.Name]
	for key, value := range object.GetLabels() {
		if was[key] != value {
			owners[key] = object.GetResourceVersion()
		}
	}
	maps.DeleteFunc(owners, func(key, _ string) bool { _, there := object.GetLabels()[key]; return !there })
	m.there[t.Name] = object
	m.noteState(object.GetResourceVersion())
}

func (m *lived) noteState(revision string) {
	if _, known := m.at[revision]; known {
		return // nothing was changed
	}
	m.at[revision] = maps.Clone(m.there)
	m.revisions = append(m.revisions, revision)
}

// noteDeletion records a deletion, whose revision the history has.
func (m *lived) noteDeletion(t Target) {
	m.Helper()
	change, err := first(m.c.History.Changes(m.Context(), Query{Limit: 1}.ToObject(t)))
	m.must(err)
	m.noteState(fmt.Sprint(change.Revision))
}

func moment(revision string) Moment {
	m, _ := parseMoment(revision, now)
	return m
}

// undo gives the object a state that it had, and compares it with that.
func (m *lived) undo(t Target) {
	m.Helper()
	var states []string
	for _, revision := range m.revisions {
		if m.at[revision][t.Name] != nil {
			states = append(states, revision)
		}
	}
	to := states[m.IntN(len(states))]
	step, err := m.c.Reverter.Undo(m.Context(), t, moment(to))
	m.must(err)
	m.must(m.c.Reverter.Try(m.Context(), step))
	if step.Empty() {
		return
	}
	object, err := m.c.Reverter.Do(m.Context(), step, false)
	m.must(err)
	if diff := cmp.Diff(m.at[to][t.Name].GetLabels(), object.GetLabels()); diff != "" {
		m.Errorf("%s undone to %s: %s", t, to, diff)
	}
	if object.GetUID() != m.there[t.Name].GetUID() {
		m.Errorf("%s undone to %s has another uid", t, to)
	}
	m.note(t, object)
}

// undelete brings the object back, if it was there once, and compares it with what it was at last.
func (m *lived) undelete(t Target) {
	m.Helper()
	var last *unstructured.Unstructured
	for _, revision := range slices.Backward(m.revisions) {
		if last = m.at[revision][t.Name]; last != nil {
			break
		}
	}
	step, err := m.c.Reverter.Undelete(m.Context(), t, Moment{})
	if last == nil {
		if err == nil || !strings.Contains(err.Error(), "no deletion of it is kept") {
			m.Errorf("%s, which has never been, is undeleted: %v", t, err)
		}
		return
	}
	object := m.do(step, err)
	if diff := cmp.Diff(last.GetLabels(), object.GetLabels()); diff != "" || object.GetUID() == last.GetUID() {
		m.Errorf("%s undeleted: uid %s, %s", t, object.GetUID(), diff)
	}
	m.note(t, object)
}

func (m *lived) compareStates() {
	m.Helper()
	for _, revision := range m.revisions {
		list, err := m.c.History.AllAt(m.Context(), m.target(m.kind, ""), moment(revision))
		m.must(err)
		got := map[string]map[string]any{}
		for i := range list {
			if name := list[i].Object.Name; strings.HasPrefix(name, "model-") {
				object, err := Object(&list[i])
				m.must(err)
				got[name] = object.Object
			}
		}
		want := map[string]map[string]any{}
		for name, object := range m.at[revision] {
			if object != nil {
				want[name] = object.Object
			}
			v, err := m.c.History.At(m.Context(), m.target(m.kind, name), moment(revision))
			m.must(err)
			if (v == nil) != (object == nil) || v != nil && fmt.Sprint(v.Revision) != object.GetResourceVersion() {
				m.Errorf("%s at %s: %v", name, revision, v)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			m.Errorf("at %s: %s", revision, diff)
		}
	}
}

func (m *lived) compareBlame() {
	m.Helper()
	for name, object := range m.there {
		if object == nil {
			continue
		}
		lines, err := m.c.History.Blame(m.Context(), m.target(m.kind, name), Moment{}, View{})
		m.must(err)
		got := map[string]string{}
		for _, line := range lines {
			key, _, _ := strings.Cut(strings.TrimSpace(line.Text), ":")
			if _, isLabel := object.GetLabels()[key]; isLabel {
				got[key] = fmt.Sprint(line.Change.Revision)
			}
		}
		if diff := cmp.Diff(m.owners[name], got); diff != "" {
			m.Errorf("blame %s: %s", name, diff)
		}
	}
}
