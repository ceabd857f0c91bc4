package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestFollowEtcd imports an etcd while it is written to.
func TestFollowEtcd(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		url := "http://" + etcdtest.StartAt(t)
		open := func() (upstream.LiveSource, error) {
			return upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{url}})
		}
		testFollow(t, client(t, url), open, d.Fresh(t))
	})
}

// TestFollowKine imports kine's table in each dialect while kine writes to it.
func TestFollowKine(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		c := client(t, "http://"+etcdtest.StartKine(t, kineEndpoint(t, dsn)))
		testFollow(t, c, func() (upstream.LiveSource, error) { return upstream.OpenKine(t.Context(), dsn, true) }, logtest.SQLite(t))
	})
}

// testFollow has writers write before, while and after all objects are taken, until it asks for the end.
// Then the target has the same as another one, filled from the source as it then is.
func testFollow(t *testing.T, c store, open func() (upstream.LiveSource, error), dsn string) {
	p := providers(t, "testdata/encryption.yaml")
	w := &writer{store: c, p: p, in: fmt.Sprintf("n%d", rand.Uint32())}
	w.write(t, 50)
	source, err := open()
	must(t, err)
	defer source.Close()
	log := openLog(t, dsn)
	steps := make(chan upstream.Step, 1000)
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: p, Tell: func(s upstream.Step) { steps <- s }, Follow: &upstream.Follow{From: source}}
	must(t, im.Survey(t.Context()))
	w.write(t, 30)
	w.define(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var report upstream.Report
	var runErr error
	var running sync.WaitGroup
	running.Go(func() { report, runErr = im.Run(ctx, log) })
	if s := <-steps; s.Err != nil {
		t.Error(s.Err)
	}
	if err := changelog.HalfCopied(t.Context(), log); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("before the end: %v", err)
	}
	w.write(t, 120)
	last := c.revision(t)
	end()
	running.Wait()
	must(t, runErr)
	must(t, changelog.HalfCopied(t.Context(), log))
	if report.Revision < last {
		t.Errorf("taken is up to revision %d, not %d", report.Revision, last)
	}
	again, err := open()
	must(t, err)
	defer again.Close()
	whole := openLog(t, logtest.SQLite(t))
	want := take(t, again, whole, p)
	if diff := cmp.Diff(want.Resources, report.Resources); diff != "" {
		t.Errorf("report: %s", diff)
	}
	sameRows(t, whole, log, p)
	head, err := log.Head(t.Context())
	must(t, err)
	if head.Floor < report.Revision {
		t.Errorf("clients may have seen revision %d; compacted is %d", report.Revision, head.Floor)
	}
}

func sameRows(t *testing.T, whole, followed changelog.Log, p *encryption.Providers) {
	t.Helper()
	want, wantSealed := plainRows(t, whole, p)
	got, gotSealed := plainRows(t, followed, p)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
		t.Errorf("%d objects: %s", len(want), diff)
	}
	if !slices.Equal(wantSealed, gotSealed) || len(wantSealed) == 0 {
		t.Errorf("encrypted are %q, not %q", gotSealed, wantSealed)
	}
}

// writer makes, changes and deletes objects at random: ConfigMaps, encrypted Secrets, and custom
// resources.
type writer struct {
	store
	p       *encryption.Providers
	in      string // namespace, and name of the group
	n       int
	defined bool
}

func (w *writer) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		w.n++
		name := fmt.Sprintf("o-%d", rand.IntN(12))
		var key, value string
		switch kind := rand.IntN(3); {
		case kind == 0 && w.defined:
			key = "/registry/" + w.group() + "/cars/" + w.in + "/" + name
			value = fmt.Sprintf(`{"apiVersion":%q,"kind":"Car","metadata":{"name":%q,"namespace":%q},"n":%d}`, w.group()+"/v1", name, w.in, w.n)
		case kind == 1:
			key = "/registry/secrets/" + w.in + "/" + name
			value = w.seal(t, key, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":%q,"generation":%d}}`, name, w.in, w.n))
		default:
			key = "/registry/configmaps/" + w.in + "/" + name
			value = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"generation":%d}}`, name, w.in, w.n)
		}
		if rand.IntN(3) == 0 {
			w.remove(t, key)
		} else {
			w.set(t, key, value)
		}
	}
}

func (w *writer) seal(t *testing.T, key, value string) string {
	t.Helper()
	sealed, err := w.p.ToUpstream(t.Context(), secrets, key, []byte(value))
	must(t, err)
	return string(sealed)
}

func (w *writer) group() string { return w.in + ".example.com" }

// define defines a resource that the import has not seen when it began.
func (w *writer) define(t *testing.T) {
	t.Helper()
	name := "cars." + w.group()
	w.set(t, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+name, fmt.Sprintf(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":"cars","kind":"Car"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, name, w.group()))
	w.defined = true
}

// away is a source that goes away: an etcd behind a way that is cut, or blocked.
func away(t *testing.T) (*way.Way, store, *following) {
	t.Helper()
	address := etcdtest.StartAt(t)
	w, err := way.New(address)
	must(t, err)
	t.Cleanup(func() { w.Close() })
	c := client(t, "http://"+address)
	c.set(t, "/registry/configmaps/n/a", configMap("a"))
	return w, c, follow(t, "http://"+w.Address(), openLog(t, logtest.SQLite(t)))
}

// follow begins to follow an etcd, and returns in step.
func follow(t *testing.T, etcd string, log changelog.Log) *following {
	t.Helper()
	source, err := upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{etcd}})
	must(t, err)
	t.Cleanup(func() { source.Close() })
	f := &following{log: log, steps: make(chan upstream.Step, 1000), giveUp: make(chan struct{}), ended: make(chan error, 1)}
	f.im = &upstream.Import{From: source, Layout: layout(t), Encryption: providers(t, ""), Tell: func(s upstream.Step) { f.steps <- s }, Follow: &upstream.Follow{From: source, GiveUp: f.giveUp}}
	must(t, f.im.Survey(t.Context()))
	ctx, end := context.WithCancel(t.Context())
	f.end = end
	go func() {
		_, err := f.im.Run(ctx, f.log)
		f.ended <- err
	}()
	f.until(t, "in step", func(s upstream.Step) bool { return s.Err == nil })
	return f
}

func configMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"n"}}`, name)
}

// following is an import that runs.
type following struct {
	im     *upstream.Import
	log    changelog.Log
	steps  chan upstream.Step
	end    context.CancelFunc
	giveUp chan struct{}
	ended  chan error
}

// until waits for a step. The log has how long that took, which a test does not judge: machines have other work.
func (f *following) until(t *testing.T, what string, is func(upstream.Step) bool) upstream.Step {
	t.Helper()
	begun := time.Now()
	for {
		select {
		case s := <-f.steps:
			if is(s) {
				t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
				return s
			}
		case err := <-f.ended:
			t.Fatalf("%s: the import has ended: %v", what, err)
		case <-time.After(etcdtest.Patience):
			t.Fatalf("%s: nothing is told", what)
		}
	}
}

// TestFollowAway has a source that dies, or hangs. The import tells of it, answers when it is asked to end
// meanwhile, and takes the rest when the source is back.
func TestFollowAway(t *testing.T) {
	for name, breaking := range map[string]struct{ gone, back func(*way.Way, string) }{
		"dead":  {func(w *way.Way, _ string) { w.Lead(""); w.Cut() }, func(w *way.Way, to string) { w.Lead(to) }},
		"hangs": {func(w *way.Way, _ string) { w.Block() }, func(w *way.Way, _ string) { w.Unblock() }},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, f := away(t)
			breaking.gone(w, "")
			if s := f.until(t, "a warning", func(s upstream.Step) bool { return s.Err != nil }); s.Ending {
				t.Errorf("%+v", s)
			}
			c.set(t, "/registry/configmaps/n/b", configMap("b"))
			f.end()
			if s := f.until(t, "the answer to the request to end", func(s upstream.Step) bool { return s.Ending }); s.Err == nil || s.Away <= 0 {
				t.Errorf("%+v", s)
			}
			breaking.back(w, strings.TrimPrefix(c.Endpoints()[0], "http://"))
			f.until(t, "going on", func(s upstream.Step) bool { return s.Back })
			must(t, <-f.ended)
			got, _ := plainRows(t, f.log, providers(t, ""))
			if len(got) != 2 {
				t.Errorf("taken are %v", got)
			}
		})
	}
}

// TestFollowQuietAway has a source go away for a moment to which nobody writes, before and after. Of the watch that etcd's
// client opens again behind the newest revision an etcd tells no progress, so that the import must not wait for it.
func TestFollowQuietAway(t *testing.T) {
	t.Parallel()
	w, c, f := away(t)
	w.Lead("")
	w.Cut()
	f.until(t, "a warning", func(s upstream.Step) bool { return s.Err != nil })
	w.Lead(strings.TrimPrefix(c.Endpoints()[0], "http://"))
	const patience = 15 * time.Second // with a watch that says nothing
	if s := f.until(t, "going on", func(s upstream.Step) bool { return s.Back }); s.Away >= patience {
		t.Errorf("it was away for %v", s.Away)
	}
	f.end()
	must(t, <-f.ended)
}

// TestSurveyAway has a source that dies, or hangs, before all keys are looked through. The import tells of it, and goes on
// when the source is back.
func TestSurveyAway(t *testing.T) {
	for name, breaking := range map[string]struct{ gone, back func(w *way.Way, to string) }{
		"dead":  {func(w *way.Way, _ string) { w.Lead(""); w.Cut() }, func(w *way.Way, to string) { w.Lead(to) }},
		"hangs": {func(w *way.Way, _ string) { w.Block() }, func(w *way.Way, _ string) { w.Unblock() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := etcdtest.StartAt(t)
			w, err := way.New(address)
			must(t, err)
			t.Cleanup(w.Close)
			client(t, "http://"+address).set(t, "/registry/configmaps/n/a", configMap("a"))
			source, err := upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{"http://" + w.Address()}})
			must(t, err)
			defer source.Close()
			f := &following{steps: make(chan upstream.Step, 1000), ended: make(chan error, 1)}
			im := &upstream.Import{From: source, Layout: layout(t), Encryption: providers(t, ""), Tell: func(s upstream.Step) { f.steps <- s }, Follow: &upstream.Follow{From: source}}
			breaking.gone(w, "")
			go func() { f.ended <- im.Survey(t.Context()) }()
			f.until(t, "a warning", func(s upstream.Step) bool { return s.Err != nil })
			breaking.back(w, address)
			must(t, <-f.ended)
			for s := range f.steps {
				if s.Back {
					return
				}
			}
		})
	}
}

// TestFollowQuietEtcd follows an etcd to which nobody writes, for longer than it may leave a request without an answer.
func TestFollowQuietEtcd(t *testing.T) {
	address := etcdtest.StartAt(t)
	c := client(t, "http://"+address)
	c.set(t, "/registry/configmaps/n/a", configMap("a"))
	source, err := upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{"http://" + address}})
	must(t, err)
	defer source.Close()
	log := openLog(t, logtest.SQLite(t))
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: providers(t, ""), Follow: &upstream.Follow{From: source, Quiet: 5 * time.Second}}
	im.Tell = func(s upstream.Step) {
		if s.Err != nil {
			t.Errorf("told is %v", s.Err)
		}
	}
	must(t, im.Survey(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := im.Run(ctx, log)
	if err != nil || ctx.Err() != nil || report.Objects != 1 {
		t.Errorf("%+v: %v, %v", report, err, ctx.Err())
	}
}

// TestFollowGivenUp does not wait for a source that stays away.
func TestFollowGivenUp(t *testing.T) {
	w, _, f := away(t)
	w.Block()
	f.end()
	f.until(t, "the answer to the request to end", func(s upstream.Step) bool { return s.Ending })
	begun := time.Now()
	close(f.giveUp)
	if err := <-f.ended; !errors.Is(err, changelog.ErrHalfCopied) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	t.Logf("given up after %v", time.Since(begun))
	if err := changelog.HalfCopied(t.Context(), f.log); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("%v", err)
	}
}

// TestFollowGivenUpTarget does not wait for a target that is silent, whether there is something to write or not.
func TestFollowGivenUpTarget(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		for name, writes := range map[string]bool{"nothing to write": false, "a change": true} {
			t.Run(name, func(t *testing.T) {
				dsn, err := url.Parse(d.Fresh(t))
				must(t, err)
				w, err := way.New(dsn.Host)
				must(t, err)
				t.Cleanup(w.Close)
				dsn.Host = w.Address()
				address := etcdtest.StartAt(t)
				c := client(t, "http://"+address)
				c.set(t, "/registry/configmaps/n/a", configMap("a"))
				log := &askedLog{openLog(t, dsn.String()), make(chan struct{}, 100)}
				f := follow(t, "http://"+address, log)
				w.Block()
				defer w.Unblock()
				for len(log.marks) > 0 { // of writes before
					<-log.marks
				}
				if writes {
					c.set(t, "/registry/configmaps/n/b", configMap("b"))
				}
				f.end()
				f.until(t, "the answer to the request to end", func(s upstream.Step) bool { return s.Ending })
				for len(log.marks) == 0 { // before the last write, or the end
					time.Sleep(time.Millisecond)
				}
				begun := time.Now()
				close(f.giveUp)
				if err := <-f.ended; !errors.Is(err, changelog.ErrHalfCopied) || !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				t.Logf("given up after %v", time.Since(begun))
			})
		}
	})
}

// askedLog tells when its marks are asked for.
type askedLog struct {
	changelog.Log
	marks chan struct{}
}

func (l *askedLog) Marks(ctx context.Context) (map[string]string, error) {
	l.marks <- struct{}{}
	return l.Log.Marks(ctx)
}

// TestFollowInterrupted ends an import before all objects are taken. That leaves a half of it.
func TestFollowInterrupted(t *testing.T) {
	source := newMoving()
	source.set("a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	source.each = cancel
	log := openLog(t, logtest.SQLite(t))
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: providers(t, ""), Follow: &upstream.Follow{From: source}}
	if _, err := im.Run(ctx, log); !errors.Is(err, changelog.ErrHalfCopied) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := changelog.HalfCopied(t.Context(), log); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("%v", err)
	}
}

// TestFollowCompacted has a source that loses changes and does not always answer. The import compares
// all keys, and tells of the errors.
func TestFollowCompacted(t *testing.T) {
	source := newMoving()
	source.set("a", 1)
	source.set("b", 1)
	source.set("c", 1)
	var told []error
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: p, Follow: &upstream.Follow{From: source, Quiet: 2 * time.Second}}
	im.Tell = func(s upstream.Step) { told = append(told, s.Err) }
	must(t, im.Survey(t.Context()))
	away := errors.New("it is away")
	source.failures = []error{away, upstream.ErrCompacted, nil}
	source.each = func() { // when the objects are read, which are those of before
		source.each = nil
		source.set("a", 2)
		source.remove("b")
		source.set("d", 1)
	}
	report, err := im.Run(t.Context(), log)
	must(t, err)
	got, _ := plainRows(t, log, p)
	want := map[string]string{"/registry/core/configmaps/n/a": source.stored("a", 2), "/registry/core/configmaps/n/c": source.stored("c", 1), "/registry/core/configmaps/n/d": source.stored("d", 1)}
	if diff := cmp.Diff(want, got); diff != "" || report.Objects != 3 || report.Revision != 6 {
		t.Errorf("report %+v: %s", report, diff)
	}
	if len(told) < 2 || !errors.Is(told[0], away) || told[len(told)-1] != nil {
		t.Errorf("told was %v", told)
	}
	rows, err := log.Rows(t.Context(), 0, 100)
	must(t, err)
	if last := rows[len(rows)-1]; !last.Deleted || last.Key != "/registry/core/configmaps/n/b" || string(last.Value) != source.stored("b", 1) || len(rows) != 6 {
		t.Errorf("%d rows, the last is %+v", len(rows), last)
	}
}

// moving is a LiveSource for tests, of ConfigMaps.
type moving struct {
	now, at  map[string]upstream.Pair // at is as of the revision
	newest   int64
	revision int64
	events   []upstream.Event
	failures []error // of Changes
	each     func()  // is called by Each
	changes  func()  // is called by Changes
}

func newMoving() *moving {
	return &moving{now: map[string]upstream.Pair{}, at: map[string]upstream.Pair{}}
}

func (m *moving) stored(name string, n int) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"n","generation":%d}}`, name, n)
}

func (m *moving) set(name string, n int) {
	m.put("/registry/configmaps/n/"+name, m.stored(name, n))
}

func (m *moving) put(key, value string) {
	m.newest++
	p := upstream.Pair{Key: key, Value: []byte(value), Revision: m.newest}
	m.now[p.Key] = p
	m.events = append(m.events, upstream.Event{Pair: p})
}

func (m *moving) remove(name string) {
	m.newest++
	p := upstream.Pair{Key: "/registry/configmaps/n/" + name, Revision: m.newest}
	delete(m.now, p.Key)
	m.events = append(m.events, upstream.Event{Pair: p, Deleted: true})
}

func (m *moving) Revision() int64                       { return m.revision }
func (m *moving) Close() error                          { return nil }
func (m *moving) Newest(context.Context) (int64, error) { return m.newest, nil }

func (m *moving) Refresh(context.Context) error {
	m.at = map[string]upstream.Pair{}
	for key, p := range m.now {
		m.at[key] = p
	}
	m.revision = m.newest
	return nil
}

func (m *moving) Each(ctx context.Context, _ string, f func([]upstream.Pair) error) error {
	if m.revision == 0 {
		_ = m.Refresh(ctx)
	}
	for _, p := range m.at {
		if err := f([]upstream.Pair{p}); err != nil {
			return err
		}
	}
	if m.each != nil {
		m.each()
	}
	return ctx.Err()
}

func (m *moving) Changes(_ context.Context, _ string, after int64) (upstream.Changes, error) {
	if len(m.failures) > 0 {
		err := m.failures[0]
		m.failures = m.failures[1:]
		if err != nil {
			return upstream.Changes{}, err
		}
	}
	if m.changes != nil {
		m.changes()
	}
	got := upstream.Changes{Through: m.newest}
	for _, e := range m.events {
		if e.Revision > after {
			got.Events = append(got.Events, e)
		}
	}
	return got, nil
}

// TestFollowQuiet takes longer to read all objects than it is to be quiet for. The time before does not
// count.
func TestFollowQuiet(t *testing.T) {
	const quiet = 200 * time.Millisecond
	source := newMoving()
	source.set("a", 0)
	source.each = func() { time.Sleep(2 * quiet) }
	n := 0
	source.changes = func() {
		if n++; n <= 5 {
			source.set("a", n)
		}
	}
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: p, Follow: &upstream.Follow{From: source, Quiet: quiet}}
	_, err := im.Run(t.Context(), log)
	must(t, err)
	if got, _ := plainRows(t, log, p); got["/registry/core/configmaps/n/a"] != source.stored("a", 5) {
		t.Errorf("%v", got)
	}
}

// TestFollowDefinition has a custom resource that the import meets before its definition.
func TestFollowDefinition(t *testing.T) {
	source := newMoving()
	const car = `{"kind":"Car","apiVersion":"acme.io/v1","metadata":{"name":"a"}}`
	source.put("/registry/acme.io/cars/a", car)
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	im := &upstream.Import{From: source, Layout: layout(t), Encryption: p, Follow: &upstream.Follow{From: source, Quiet: time.Second}}
	source.each = func() {
		source.each = nil
		source.put("/registry/apiextensions.k8s.io/customresourcedefinitions/cars.acme.io", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"cars.acme.io"},"spec":{"group":"acme.io","scope":"Cluster","names":{"plural":"cars","kind":"Car"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	}
	report, err := im.Run(t.Context(), log)
	must(t, err)
	got, _ := plainRows(t, log, p)
	if got["/registry/acme.io/cars/a"] != car || report.Objects != 2 || len(report.NotTaken) > 0 {
		t.Errorf("%+v: %v", report, got)
	}
}
