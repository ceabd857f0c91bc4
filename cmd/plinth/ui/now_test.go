package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestNow: the log has the changes that its filters want, the newest first, each with a link to the timeline.
func TestNow(t *testing.T) {
	b := newWorkbench(t)
	s := newStory(t, b.server.Config)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere}}`)
	s.patch("kubelet", "Deployment", "web", "status", map[string]any{"status": map[string]any{"replicas": 3}}, "status")

	page := b.open("now?ns=shop").is(200).has("configmaps/banner", "deployments.apps/web", "kubectl-scale", "carol", "live", "/x/live/now?ns=shop&rv=")
	page.hasNot("elsewhere", "update status", "kubelet")
	if strings.Index(page.html, "configmaps/banner") < strings.Index(page.html, "deployments.apps/mailer") {
		t.Error("what was deleted later is not above")
	}
	web := fmt.Sprintf(`/x/objects/deployments.apps/shop/web/timeline?ns=shop&rv=%s`, b.revisionOf("web", "bob"))
	page.has(web)
	b.open("now").has("elsewhere", "deployments.apps/web")
	b.open("now?ns=shop&user=carol").has("deployments.apps/mailer", "Show all").hasNot("configmaps/settings")
	b.open("now?ns=shop&kind=cm&verb=delete").has("configmaps/banner").hasNot("configmaps/settings", "deployments.apps/mailer")
	b.open("now?ns=shop&status=1").has("kubelet", "patch status")
	b.open("now?ns=shop&user=nobody").has("Nothing has changed yet.")
}

// revisionOf is that of the last change of a Deployment by a user.
func (b *workbench) revisionOf(name, user string) string {
	b.Helper()
	list, err := b.of("changes.v1.history.plinth.io", "shop").List(b.Context(), metav1.ListOptions{FieldSelector: "object.name=" + name + ",user=" + user + ",object.resource=deployments.apps"})
	if err != nil || len(list.Items) == 0 {
		b.Fatal(err, len(list.Items))
	}
	return list.Items[0].GetName()
}

// TestNowQuiet: what only says that something is alive is shown to those who ask.
func TestNowQuiet(t *testing.T) {
	b := newWorkbench(t)
	b.make("leases.v1.coordination.k8s.io", "default", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: heartbeat}}`)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: loud}}`)
	b.open("now").is(200).has("configmaps/loud").hasNot("heartbeat")
	b.open("now?quiet=1").has("configmaps/loud", "leases.coordination.k8s.io/heartbeat")
	b.open("now?kind=leases").has("heartbeat").hasNot("configmaps/loud")
}

// TestNowEnds: a status that ends a deletion is a deletion, not a status.
func TestNowEnds(t *testing.T) {
	b := newWorkbench(t)
	var all []historyv1.Change
	for revision, action := range []historyv1.Action{historyv1.Changed, historyv1.Deleted} {
		all = append(all, historyv1.Change{Description: historyv1.Description{Revision: int64(revision), Action: action, Subresource: "status"}})
	}
	if f := (filter{}); f.wants(all[0]) || !f.wants(all[1]) {
		t.Error("wants the other one")
	}
	if f := (filter{Status: true, User: "ann"}); f.wants(all[0]) {
		t.Error("wants the change of another user")
	}
	b.open("now?since=2h&user=nobody").is(200).has("Nothing changed then.")
}

// TestNowSpan: a span has its changes, is not live, and leads back; older ones are a page on.
func TestNowSpan(t *testing.T) {
	b := newWorkbench(t)
	for i := range nowRows + 5 {
		b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: many-%03d}}`, i)
	}
	page := b.open("now?ns=default").is(200).has("many-204", "many-005", "Older").hasNot("many-004<")
	_, rest, _ := strings.Cut(page.html, `id="older"><a href="`)
	older, _, _ := strings.Cut(rest, `"`)
	b.open(strings.ReplaceAll(older, "&amp;", "&")).is(200).has("many-004", "many-000", "Live again", "Changes of that time").hasNot("many-005", "data-live", "live/now")
	middle := b.now("configmaps", "default", "many-100").GetResourceVersion()
	b.open("now?ns=default&since="+middle+"&until="+middle).has("many-100").hasNot("many-101", "many-099")
	b.open("now?ns=default&at="+middle).has("many-100").hasNot("many-101", "live/now")
	b.open("now?since=1h").has("many-204")
}

// TestNowBad: what is not understood is said on the page, which keeps what was written.
func TestNowBad(t *testing.T) {
	b := newWorkbench(t)
	b.open("now?since=yesterdayish").is(400).has("is no moment of the past", `value="yesterdayish"`)
	b.open("now?until=~2").is(400).has("is no moment of the past")
	b.open("now?kind="+strings.ReplaceAll(hostile, "&", "%26")).is(404).has(hostile, "What happens").hasNot("<script>alert")
	b.open("now?user=" + strings.ReplaceAll(hostile, "&", "%26")).is(200).has(hostile).hasNot("<script>alert")
	b.open("now?at=~2").is(400).has("counts the changes of one object")
	b.open("live/now?rv=nonsense").is(400).has("is no resourceVersion")
	b.open("live/now").is(400)
	b.as("stranger").open("now").is(403).has("cannot list resource", "changes", "stranger")
	b.as("stranger").open("now/day").is(403).has("cannot list resource")
}

// TestNowHostile: no field of a change is read as HTML.
func TestNowHostile(t *testing.T) {
	b := newWorkbench(t)
	if _, err := b.of("configmaps", "default").Create(t.Context(), configMap("plain", nil), metav1.CreateOptions{FieldManager: hostile}); err != nil {
		t.Fatal(err)
	}
	s := &story{T: t, config: b.server.Config}
	s.create(hostile, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: default}}`)
	b.open("now").is(200).has(hostile, "plain", "theirs").hasNot("<script>alert")
	b.open("").is(200).has(hostile, "theirs").hasNot("<script>alert")
	b.open("now/day").is(200).hasNot("<script>alert")
}

// follow reads the events of a live page from a revision on, until the test ends.
func (b *workbench) follow(path, lastID string) <-chan liveEvent {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := b.request(http.MethodGet, path, nil).WithContext(ctx)
	r.Header.Set("Last-Event-ID", lastID)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	events, ended := make(chan liveEvent, 1000), make(chan bool)
	b.Cleanup(func() { stop(); response.Body.Close(); <-ended })
	if response.StatusCode != 200 {
		text, _ := io.ReadAll(response.Body)
		close(ended)
		b.Fatalf("%d: %s", response.StatusCode, text)
	}
	go func() {
		defer close(ended)
		defer close(events)
		var e liveEvent
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					events <- e
				}
				e = liveEvent{}
			}
		}
	}()
	return events
}

type liveEvent struct{ id, name, data string }

// next returns the changes of the next event.
func (b *workbench) next(events <-chan liveEvent) (id string, changes []liveChange) {
	b.Helper()
	select {
	case e, ok := <-events:
		if !ok || e.name != "changes" {
			b.Fatalf("the event is %+v", e)
		}
		if err := json.Unmarshal([]byte(e.data), &changes); err != nil {
			b.Fatal(err)
		}
		return e.id, changes
	case <-time.After(time.Minute):
		b.Fatal("no event comes")
	}
	return "", nil
}

// liveAddress is where the page gets what comes.
func (a *reply) liveAddress() string {
	a.Helper()
	_, rest, ok := strings.Cut(a.html, `data-live="/x/`)
	if !ok {
		a.Fatal("the page is not live")
	}
	address, _, _ := strings.Cut(rest, `"`)
	return strings.ReplaceAll(address, "&amp;", "&")
}

// TestLiveNow: changes come as they are made, those that the filter wants; a stream that ended goes on after the last
// event, without a gap and without saying anything twice.
func TestLiveNow(t *testing.T) {
	b := newWorkbench(t)
	s := newStory(t, b.server.Config)
	address := b.open("now?ns=shop&kind=configmaps").liveAddress()
	events := b.follow(address, "")
	s.patch("ann", "Deployment", "web", "kubectl-set", image("web", "shop/web:9"))
	s.create("ann", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh, namespace: shop}, data: {a: %q}}`, hostile))
	id, changes := b.next(events)
	if c := changes[0]; len(changes) != 1 || c.Name != "fresh" || c.Person == "" || c.Account != "ann" || c.Action != "created" || c.Resource != "configmaps" || fmt.Sprint(c.Revision) != id {
		t.Fatalf("%+v, id %s", changes, id)
	}
	b.as("").open(strings.TrimPrefix(changes[0].Link, "/x/")).has("fresh")
	s.patch("bob", "ConfigMap", "fresh", "edit", map[string]any{"data": map[string]any{"a": "2"}})
	s.patch("bob", "ConfigMap", "fresh", "edit", map[string]any{"data": map[string]any{"a": "3"}})
	resumed := b.follow(address, id)
	var seen []string
	for len(seen) < 2 {
		_, changes = b.next(resumed)
		for _, c := range changes {
			seen = append(seen, c.Person+" "+c.Action)
		}
	}
	if len(seen) != 2 || !strings.Contains(seen[0], "bob changed") || !strings.Contains(seen[1], "bob changed") {
		t.Errorf("after the last event come %q", seen)
	}
}

// TestLiveNowStranger: who may not watch is told so by an event, which ends the stream.
func TestLiveNowStranger(t *testing.T) {
	b := newWorkbench(t)
	events := b.as("stranger").follow("live/now?rv=1", "")
	select {
	case e := <-events:
		if e.name != "fault" || !strings.Contains(e.data, "cannot watch resource") {
			t.Errorf("%+v", e)
		}
	case <-time.After(time.Minute):
		t.Fatal("no event comes")
	}
	if e, more := <-events; more {
		t.Errorf("then comes %+v", e)
	}
}

// TestDay: the figures count each change once, where it belongs, by those who made it.
func TestDay(t *testing.T) {
	b := newWorkbench(t)
	s := newStory(t, b.server.Config)
	for i := range 7 {
		s.create(fmt.Sprintf("user-%d", i), fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: of-%d, namespace: shop}}`, i))
	}
	var d dayFigures
	answer := b.open("now/day?ns=shop").is(200)
	if err := json.Unmarshal([]byte(answer.html), &d); err != nil {
		t.Fatal(err)
	}
	list, err := b.of("changes.v1.history.plinth.io", "shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]int{}
	total := 0
	for _, item := range list.Items {
		if o, _ := item.Object["object"].(map[string]any); o["resource"] == "events" {
			continue
		}
		user, _ := item.Object["user"].(string)
		wanted[user]++
		total++
	}
	if d.Total != total {
		t.Errorf("%d changes are counted of %d", d.Total, total)
	}
	if len(d.People) != dayPeople+1 {
		t.Fatalf("%d people: %+v", len(d.People), d.People)
	}
	sum := 0
	for i, p := range d.People {
		n := 0
		for _, count := range p.Counts {
			n += count
		}
		if n != p.Total || len(p.Counts) != dayParts {
			t.Errorf("%s: %d in %d parts, %d in all", p.Name, n, len(p.Counts), p.Total)
		}
		if sum += n; i < dayPeople && wanted[p.User] != p.Total {
			t.Errorf("%s has %d changes, not %d", p.User, wanted[p.User], p.Total)
		}
	}
	if others := d.People[dayPeople]; sum != total || others.User != "" || !strings.HasSuffix(others.Name, "others") {
		t.Errorf("%d in all of %d; the last is %+v", sum, total, others)
	}
	if time.Unix(d.End, 0).Before(time.Now().Add(-time.Minute)) || d.Start+int64(dayParts)*d.Step < d.End || d.Start+int64(dayParts-1)*d.Step > d.End {
		t.Errorf("from %d in steps of %d to %d", d.Start, d.Step, d.End)
	}
}

// TestDayParts puts changes into the parts that they were made in, and leaves out those of another day.
func TestDayParts(t *testing.T) {
	end := time.Date(2026, 5, 4, 14, 27, 0, 0, time.UTC)
	d := newDay(end)
	at := func(ago time.Duration, user string) historyv1.Change {
		return historyv1.Change{Description: historyv1.Description{Time: metav1.NewMicroTime(end.Add(-ago)), User: user}}
	}
	d.count([]historyv1.Change{
		at(0, "ann"), at(7*time.Minute-time.Second, "ann"), at(7*time.Minute, "ann"), at(8*time.Minute, "bob"), at(23*time.Hour+57*time.Minute, "bob"),
		at(-4*time.Minute, "ann"), at(23*time.Hour+58*time.Minute, "bob"), at(25*time.Hour, "bob"),
	})
	if d.Total != 5 || len(d.People) != 2 {
		t.Fatalf("%+v", d)
	}
	ann, bob := d.People[0].Counts, d.People[1].Counts
	if ann[dayParts-1] != 3 || bob[dayParts-2] != 1 || bob[0] != 1 {
		t.Errorf("ann %v, bob %v", ann, bob)
	}
}

// TestDayCache: figures are made once for all who ask at a time, again when they are old, and an error is not kept.
func TestDayCache(t *testing.T) {
	var c dayCache
	made := 0
	figure := func() (*dayFigures, error) { made++; return &dayFigures{Total: made}, nil }
	if _, err := c.get("a", func() (*dayFigures, error) { return nil, io.EOF }); err != io.EOF {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := c.get("a", figure); err != nil || d.Total != 1 {
			t.Fatal(d, err)
		}
	}
	c.entry("a").until = time.Now()
	if d, _ := c.get("a", figure); d.Total != 2 {
		t.Errorf("old figures stay: %+v", d)
	}
	for i := range 3 * mostDays {
		_, _ = c.get(fmt.Sprint(i), figure)
		if len(c.byKey) > mostDays {
			t.Fatalf("%d are kept", len(c.byKey))
		}
	}
}
