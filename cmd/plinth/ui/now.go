package ui

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// nowPage is the log of changes: the newest, and those that come.
type nowPage struct {
	*visit
	Changes []changeRow
	Live    string // address of the changes that come; empty if the page is of a span of the past
	Day     string // address of the chart's figures
	Older   string // address of the changes before these; empty: there are none
	Span    bool   // of the past
	Kept    string
	Fault   *explained

	Kind, User, Verb, Since, Until string // as the visitor wrote them
	Status, Quiet                  bool
	Verbs                          []string
}

// Filtered tells whether anything but the span is chosen.
func (b *nowPage) Filtered() bool {
	return b.Kind != "" || b.User != "" || b.Verb != "" || b.Status || b.Quiet
}

// nowRows is how many rows the page has before others come; static/now.js bounds them then.
const nowRows = 200

// verbs are those of requests that change something.
var verbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// now shows what happens.
func (v *visit) now() error {
	b := &nowPage{
		visit: v,
		Kind:  v.param("kind"), User: v.param("user"), Verb: v.param("verb"), Since: v.param("since"), Until: v.param("until"),
		Status: v.param("status") == "1", Quiet: v.param("quiet") == "1", Verbs: verbs,
	}
	b.Span = b.Since != "" || b.Until != "" || v.atText != ""
	p := page{Title: "What happens", Nav: "now", Body: b}
	if err := b.fill(); err != nil {
		e := explain(err)
		b.Fault, p.Code = &e, e.Code
	}
	return v.show("now.html", p)
}

func (b *nowPage) fill() error {
	f, err := b.filter()
	if err != nil {
		return err
	}
	b.Day = b.withFilter("now/day")
	if !b.Span {
		// What comes is followed from a revision up to which the list is complete.
		_, head, err := b.past.History.Newest(b.ctx(), past.Query{Namespace: f.Namespace, Limit: 1})
		if err != nil {
			return err
		}
		b.Live = b.withFilter("live/now", "rv", head)
		if f.Until, err = past.ParseMoment("until", head, time.Now()); err != nil {
			return err
		}
	}
	changes, err := b.newest(f, nowRows)
	if err != nil {
		return err
	}
	b.Changes = b.changeRows(changes.all)
	if changes.more {
		b.Older = b.withFilter("now", "since", b.Since, "until", revision(changes.all[len(changes.all)-1].Revision-1))
		return nil
	}
	b.Kept = changes.kept
	return nil
}

// withFilter is link with what the visitor has chosen.
func (b *nowPage) withFilter(path string, more ...string) string {
	all := []string{"kind", b.Kind, "user", b.User, "verb", b.Verb}
	if b.Status {
		all = append(all, "status", "1")
	}
	if b.Quiet {
		all = append(all, "quiet", "1")
	}
	return b.link(path, append(all, more...)...)
}

// filter reads what a visitor has chosen.
func (v *visit) filter() (f filter, err error) {
	f = filter{Namespace: v.namespace, User: v.param("user"), Verb: v.param("verb"), Status: v.param("status") == "1", Quiet: v.param("quiet") == "1"}
	if kind := v.param("kind"); kind != "" {
		found, err := v.past.History.FindPastKind(v.ctx(), kind)
		if err != nil {
			return f, err
		}
		f.Resource = found.Name()
	}
	if f.Until, err = v.until(); err != nil {
		return f, err
	}
	for name, m := range map[string]*past.Moment{"since": &f.Since, "until": &f.Until} {
		text := v.param(name)
		if text == "" {
			continue
		}
		if *m, err = past.ParseMoment(name, text, time.Now()); err != nil || m.Back > 0 {
			return f, problem(http.StatusBadRequest, "%s: %q is no moment of the past. Write how long ago, such as 2h or 3d, a time such as 14:00 or 2006-01-02 15:04, or a resourceVersion.", name, text)
		}
	}
	return f, nil
}

// liveChange is a row that the script makes.
type liveChange struct {
	Revision  int64  `json:"rv"`
	Time      string `json:"time"`
	Action    string `json:"action"`
	Resource  string `json:"resource"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
	Person    string `json:"person"`
	Account   string `json:"account,omitempty"`
	Manager   string `json:"manager"`
	Way       string `json:"way"`
	Link      string `json:"link"`
}

func (c changeRow) live() liveChange {
	return liveChange{
		c.Revision, exact(c.When()), string(c.Action), c.Object.Resource, c.Object.Namespace, c.Object.Name,
		c.Person(), c.Account(), c.Manager(), c.Way(), c.Link,
	}
}

const (
	// liveLooks is how often a stream looks whether the API is still there: a watch that has ended is taken up again
	// without a word, for as long as it takes.
	liveLooks = 5 * time.Second
	// liveBatch bounds the changes of one event, liveWaits for how long they are gathered.
	liveBatch, liveWaits = 500, 50 * time.Millisecond
)

// liveNow sends the changes that come, until the browser leaves or the API is away; then the browser asks again from
// where it was.
func (v *visit) liveNow() error {
	f, err := v.filter()
	if err != nil {
		return err
	}
	after := cmp.Or(v.r.Header.Get("Last-Event-ID"), v.param("rv"))
	if n, err := strconv.ParseInt(after, 10, 64); err != nil || n <= 0 {
		return problem(http.StatusBadRequest, "rv: %q is no resourceVersion.", after) // it would be tried again and again
	}
	if err := v.conn.awake(v.ctx()); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(v.ctx())
	defer stop()
	feed := changeFeed{visit: v, come: make(chan historyv1.Change, liveBatch), end: make(chan error, 1)}
	history := v.conn.client.Again().History
	go func() {
		feed.end <- history.Follow(ctx, f.query(), after, func(_ *unstructured.Unstructured, change historyv1.Change) error {
			if !f.wants(change) {
				return nil
			}
			select {
			case feed.come <- change:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	feed.out = v.stream()
	err, ended := feed.send(ctx)
	if stop(); !ended {
		<-feed.end
	}
	if err == nil || ctx.Err() != nil && v.ctx().Err() != nil {
		return nil
	}
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return feed.out.send("again", "", "this is too old to go on from")
	}
	return feed.out.send("fault", "", explain(err))
}

// changeFeed passes on to a browser what one goroutine follows.
type changeFeed struct {
	*visit
	come chan historyv1.Change
	end  chan error // of the goroutine
	out  *stream
}

// send sends what comes. ended says that the goroutine that follows has.
func (f *changeFeed) send(ctx context.Context) (err error, ended bool) {
	look := time.NewTicker(liveLooks)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case err := <-f.end:
			return err, true
		case <-look.C:
			if f.conn.awake(f.ctx()) != nil || f.out.write(": still here\n\n") != nil {
				return nil, false
			}
		case change := <-f.come:
			rows := f.batch(ctx, change)
			if f.out.send("changes", revision(rows[len(rows)-1].Revision), rows) != nil {
				return nil, false
			}
		}
	}
}

// batch gathers what comes shortly after a change.
func (f *changeFeed) batch(ctx context.Context, change historyv1.Change) []liveChange {
	rows := []liveChange{f.changeRow(change.Description).live()}
	enough := time.After(liveWaits)
	for len(rows) < liveBatch {
		select {
		case change = <-f.come:
			rows = append(rows, f.changeRow(change.Description).live())
		case <-enough:
			return rows
		case <-ctx.Done():
			return rows
		}
	}
	return rows
}

// awake asks the API for a sign of life.
func (c *connection) awake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveLooks)
	defer cancel()
	return c.rest.Get().AbsPath("version").Do(ctx).Error()
}
