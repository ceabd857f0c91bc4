package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// The model is the list of changes, which the only writer records. The events that a watcher should
// get follow from the list and the watcher's selection.

// thing is an object in the model.
type thing struct {
	namespace, name string
	value           int
	app             string // a label; "" if it is not there
}

// change is one row of the log: before and after are nil where there was or is nothing.
type change struct {
	revision      int64
	before, after *thing
}

// history is shared by the writer and the watchers.
type history struct {
	mu      sync.Mutex
	base    int64 // revision before the first change
	changes []change
	done    bool
}

func (m *history) add(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, c)
}

func (m *history) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = true
}

// all returns the changes so far, and whether there will be more.
func (m *history) all() ([]change, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, m.done
}

// choice is a watcher's selection, for the server and for the model.
type choice struct {
	path, query string
	selects     func(*thing) bool
}

func randomChoice(r *rand.Rand) choice {
	c := choice{path: "/api/v1/configmaps", selects: func(t *thing) bool { return t != nil }}
	also := func(query string, f func(*thing) bool) {
		before := c.selects
		c.query += "&" + query
		c.selects = func(t *thing) bool { return before(t) && f(t) }
	}
	if r.IntN(3) > 0 {
		ns := randomNamespace(r)
		c.path = "/api/v1/namespaces/" + ns + "/configmaps"
		also("", func(t *thing) bool { return t.namespace == ns })
	}
	switch app := randomApp(r); r.IntN(7) {
	case 0:
		also("labelSelector=app%3D"+app, func(t *thing) bool { return t.app == app })
	case 1:
		also("labelSelector=app%3D"+app+"1", func(t *thing) bool { return t.app == app+"1" })
	case 2:
		also("labelSelector=app%20in%20("+app+",none)", func(t *thing) bool { return t.app == app })
	case 3:
		also("labelSelector=!app", func(t *thing) bool { return t.app == "" })
	}
	switch name := randomName(r); r.IntN(5) {
	case 0, 1:
		also("fieldSelector=metadata.name%3D"+name, func(t *thing) bool { return t.name == name })
	case 2:
		ns := randomNamespace(r)
		also("fieldSelector=metadata.namespace%3D"+ns, func(t *thing) bool { return t.namespace == ns })
	}
	return c
}

func randomNamespace(r *rand.Rand) string { return fmt.Sprintf("ns%d", r.IntN(4)) }
func randomName(r *rand.Rand) string      { return fmt.Sprintf("thing%d", r.IntN(12)) }

// randomApp is never empty, because selectors of empty labels mean something else.
func randomApp(r *rand.Rand) string { return []string{"red", "green", "blue", "red1"}[r.IntN(4)] }

// events is the event that a watcher of c gets for one change, if any.
func (c *choice) events(ch *change) (string, bool) {
	was, is := c.selects(ch.before), c.selects(ch.after)
	switch {
	case is && was:
		return event("MODIFIED", ch.after, ch.revision), true
	case is:
		return event("ADDED", ch.after, ch.revision), true
	case was:
		return event("DELETED", ch.before, ch.revision), true
	}
	return "", false
}

func event(kind string, t *thing, revision int64) string {
	return fmt.Sprintf("%s %s/%s=%d %s @%d", kind, t.namespace, t.name, t.value, t.app, revision)
}

// state are the first events of a watcher of c that starts with the state at a revision.
func (c *choice) state(changes []change, revision int64) []string {
	last := map[string]*change{}
	for i := range changes {
		if ch := &changes[i]; ch.revision <= revision {
			at := ch.after
			if at == nil {
				at = ch.before
			}
			last["/registry/core/configmaps/"+at.namespace+"/"+at.name] = ch
		}
	}
	var keys []string
	for key, ch := range last {
		if c.selects(ch.after) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for i, key := range keys {
		keys[i] = event("ADDED", last[key].after, last[key].revision)
	}
	return keys
}

// after are the events that a watcher of c gets for the changes in (from, through].
func (c *choice) after(changes []change, from, through int64) (list []string) {
	i := sort.Search(len(changes), func(i int) bool { return changes[i].revision > from })
	for ; i < len(changes) && changes[i].revision <= through; i++ {
		if e, ok := c.events(&changes[i]); ok {
			list = append(list, e)
		}
	}
	return list
}

// write makes random changes, one after the other, and calls next before each.
func (m *history) write(h *harness, r *rand.Rand, writes int, next func(n int)) {
	now := map[string]*thing{}
	for n := range writes {
		next(n)
		t := &thing{namespace: randomNamespace(r), name: randomName(r), value: n}
		if r.IntN(4) > 0 {
			t.app = randomApp(r)
		}
		key := t.namespace + "/" + t.name
		old := now[key]
		items := "/api/v1/namespaces/" + t.namespace + "/configmaps"
		body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":%q}},"data":{"key":"%d"}}`, t.name, t.app, n)
		if t.app == "" {
			body = fmt.Sprintf(`{"metadata":{"name":%q},"data":{"key":"%d"}}`, t.name, n)
		}
		switch {
		case old == nil:
			h.do("POST", items, body).want(201)
		case r.IntN(4) == 0:
			h.do("DELETE", items+"/"+t.name, "").want(200)
			t = nil
		default:
			h.do("PUT", items+"/"+t.name, body).want(200)
		}
		now[key] = t
		m.add(change{h.store.Revision(), old, t})
	}
	m.finish()
}

// modelWatcher watches with one selection, in one or several connections, until it has seen all
// changes.
type modelWatcher struct {
	h      *harness
	m      *history
	choice choice
	random *rand.Rand

	got   []string // since the last check
	first int64    // revision after which got has everything; -1 if it begins with the state
	last  int64    // newest revision seen
	began int64    // the state is of a revision from here
	ended int64    // to here
}

// run opens connections one after the other. The first starts at a random version, the others where
// the one before was broken off.
func (w *modelWatcher) run(ctx context.Context) error {
	changes, _ := w.m.all()
	w.first, w.last = -1, 0
	if w.random.IntN(2) == 0 {
		w.first = w.m.base
		if n := len(changes); n > 0 && w.random.IntN(4) > 0 {
			w.first = changes[w.random.IntN(n)].revision
		}
		w.last = w.first
	}
	for {
		done, err := w.connect(ctx)
		if err != nil || done {
			return err
		}
		w.first, w.got = w.last, nil
	}
}

func (w *modelWatcher) connect(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := "?watch=1&allowWatchBookmarks=true" + w.choice.query
	if w.first >= 0 {
		query += "&resourceVersion=" + strconv.FormatInt(w.first, 10)
	} else if w.random.IntN(2) == 0 {
		query += "&resourceVersion=0"
	}
	w.began = w.h.store.Revision()
	req, err := http.NewRequestWithContext(ctx, "GET", w.h.http.URL+w.choice.path+query, nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	w.ended = w.h.store.Revision()
	count, breakAt := 0, w.random.IntN(200)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		bookmark, err := w.note(lines.Bytes())
		if err != nil {
			return false, err
		}
		// The events of a state are in the order of keys: only a bookmark ends them surely.
		count++
		broken := count > breakAt && (w.first >= 0 || bookmark)
		if !bookmark && !broken {
			continue
		}
		if err := w.check(w.last); err != nil || broken {
			return false, err
		}
		if changes, done := w.m.all(); done && w.last >= changes[len(changes)-1].revision {
			return true, nil
		}
	}
	return false, fmt.Errorf("stream ended: %v", lines.Err())
}

// note records one event.
func (w *modelWatcher) note(line []byte) (bookmark bool, err error) {
	var e struct {
		Type   string
		Object struct {
			Metadata struct {
				Namespace, Name, ResourceVersion string
				Labels                           struct{ App string }
			}
			Data struct{ Key string }
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return false, fmt.Errorf("event %q: %v", line, err)
	}
	revision, err := strconv.ParseInt(e.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return false, fmt.Errorf("event %q: %v", line, err)
	}
	if e.Type == "BOOKMARK" {
		if revision < w.last {
			return false, fmt.Errorf("bookmark at %d after %d", revision, w.last)
		}
		w.last = revision
		return true, nil
	}
	value, _ := strconv.Atoi(e.Object.Data.Key)
	t := thing{e.Object.Metadata.Namespace, e.Object.Metadata.Name, value, e.Object.Metadata.Labels.App}
	w.got = append(w.got, event(e.Type, &t, revision))
	w.last = max(w.last, revision)
	return false, nil
}

// check compares the events since the last check with the model, up to a revision through which the
// stream is complete.
func (w *modelWatcher) check(through int64) error {
	for w.known() < through { // the writer notes a change after watchers hear of it
		time.Sleep(time.Millisecond)
	}
	changes, _ := w.m.all()
	err := w.checkAgainst(changes, through)
	w.got, w.first = nil, through
	return err
}

func (w *modelWatcher) checkAgainst(changes []change, through int64) (err error) {
	if w.first >= 0 {
		return w.compare(w.choice.after(changes, w.first, through), through)
	}
	for at := w.began; at <= min(w.ended, through); at++ {
		want := append(w.choice.state(changes, at), w.choice.after(changes, at, through)...)
		if err = w.compare(want, through); err == nil {
			return nil
		}
	}
	return err
}

func (w *modelWatcher) known() int64 {
	changes, _ := w.m.all()
	if len(changes) == 0 {
		return w.m.base
	}
	return changes[len(changes)-1].revision
}

func (w *modelWatcher) compare(want []string, through int64) error {
	if slices.Equal(w.got, want) {
		return nil
	}
	for i := range max(len(want), len(w.got)) {
		if i >= len(want) || i >= len(w.got) || want[i] != w.got[i] {
			return fmt.Errorf("%s?%s from %d through %d: event %d of %d differs from the model's of %d\n got %s\nwant %s", w.choice.path, w.choice.query,
				w.first, through, i, len(w.got), len(want), strings.Join(w.got[max(0, i-1):min(i+2, len(w.got))], "; "), strings.Join(want[max(0, i-1):min(i+2, len(want))], "; "))
		}
	}
	return nil
}

// TestWatchersSeeTheModel runs watchers with random selections and starts, some of which break off and resume, beside
// random writes. Each watcher gets exactly the events of the model.
func TestWatchersSeeTheModel(t *testing.T) {
	t.Run("postgres", func(t *testing.T) { watchModel(t, logtest.Postgres(t), 0, 100, 200) })
	t.Run("mariadb", func(t *testing.T) { watchModel(t, logtest.MariaDB(t), 1, 100, 200) })
}

// TestManyWatchersSeeTheModel does the same with more watchers.
func TestManyWatchersSeeTheModel(t *testing.T) { watchModel(t, "sqlite://:memory:", 1, 1000, 300) }

// watchModel is the test of one database; stateBytes 1: no value stays in memory; 0: all do.
func watchModel(t *testing.T, dsn string, stateBytes, watchers, writes int) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	// A small window, so that starts in the past are read from the log.
	h := newHarnessWith(t, dsn, sqlstore.Options{WindowBytes: 64 << 10, StateBytes: stateBytes}, rest.Options{BookmarkEvery: time.Second})
	h.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"first"}}`).want(201)
	watchAll(t, h, &history{base: h.store.Revision()}, seed, watchers, writes)
}

// watchAll starts the watchers over the time of the writes and waits for all of them.
func watchAll(t *testing.T, h *harness, m *history, seed uint64, watchers, writes int) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	failures := make(chan error, watchers)
	var all sync.WaitGroup
	start := func(i int) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		w := &modelWatcher{h: h, m: m, choice: randomChoice(r), random: r}
		all.Add(1)
		go func() {
			defer all.Done()
			if err := w.run(ctx); err != nil {
				failures <- fmt.Errorf("watcher %d: %w", i, err)
			}
		}()
	}
	m.write(h, rand.New(rand.NewPCG(seed, 1<<32)), writes, func(n int) {
		for i := watchers * n / writes; i < watchers*(n+1)/writes; i++ {
			start(i)
		}
	})
	all.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	if n := h.store.Stats().WatchReads; n == 0 {
		t.Error("no watcher read from the log")
	}
}
