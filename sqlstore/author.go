package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

type originKey struct{}

// WithOrigin returns a context whose commits say that they come from o, which nobody changes any more.
func WithOrigin(ctx context.Context, o *changelog.Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// originOf returns where a change with this context comes from; nil if that is not known.
func (au *authors) originOf(ctx context.Context) *changelog.Origin {
	if o, ok := ctx.Value(originKey{}).(*changelog.Origin); ok {
		return o
	}
	return au.own
}

// authors knows the numbers that the log has for authors. It belongs to the committer's goroutine.
type authors struct {
	*shared

	numbers map[changelog.Author]int64 // nil: not read yet
	added   allotted                   // to the log, with managers
	most    int
	own     *changelog.Origin // of Options.Author, nil if that is empty
	stale   atomic.Bool       // the log may have others for the same numbers
}

// mostAuthors bounds the authors in memory; when there are more, those in use come back one by one. It
// also bounds those that a process adds in an hour, see allotted.
const mostAuthors = 10_000

// allotted is how many authors with managers were added. Clients choose the names of managers, and may choose
// another one each time, so that their number is bounded, by whom they are of: a user may add a tenth of all
// that are added in an hour, and a hundredth also when others have added all. Authors beyond that have no
// manager.
type allotted struct {
	since time.Time
	all   int
	by    map[string]int // whom they are of
}

const allottedFor = time.Hour

// forget begins anew when the time is over.
func (a *allotted) forget(now time.Time) {
	if a.by == nil || now.Sub(a.since) > allottedFor {
		*a = allotted{since: now, by: map[string]int{}}
	}
}

// allows tells whether somebody may add another author, of most in all, to the ones counted and to pending ones.
func (a *allotted) allows(pending *allotted, who string, most int) bool {
	his, all := a.by[who]+pending.by[who], a.all+pending.all
	if his == 0 && len(a.by)+len(pending.by) >= most {
		return false
	}
	return his < max(1, most/100) || his < max(1, most/10) && all < most
}

func (a *allotted) count(who string, n int) {
	a.all += n
	a.by[who] += n
}

// ownerOf returns who answers for an author: the one who has logged in. Whoever may make service accounts has as many as
// they like, but only in their namespace.
func ownerOf(a *changelog.Author) string {
	who := cmp.Or(a.Impersonator, a.User)
	if account, ok := strings.CutPrefix(who, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		return "system:serviceaccount:" + namespace
	}
	return who
}

// identify gives the changes of b the numbers of their authors. It first adds to the log those
// that it does not have, in a transaction of its own, which happens once for each author. On a full
// disk changes go without.
func (au *authors) identify(ctx context.Context, b *batch) error {
	var missing []changelog.Author
	if au.stale.Swap(false) {
		au.numbers = nil
	}
	for i := range b.changes {
		c, o := &b.changes[i], b.waiters[i].change.origin
		if o == nil {
			continue
		}
		c.AuditID = changelog.AuditBytes(o.AuditID)
		if c.Author = au.numbers[o.Author]; c.Author == 0 {
			missing = append(missing, o.Author)
		}
	}
	if missing == nil || errors.Is(au.log.Condition(), changelog.ErrFull) {
		return nil
	}
	err := au.addAuthors(ctx, missing)
	if errors.Is(err, changelog.ErrFull) {
		return nil
	}
	if errors.Is(err, changelog.ErrUnknown) { // which is about the authors: nobody has written a change
		err = fmt.Errorf("%w: %v", changelog.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("note who makes a change: %w", err)
	}
	for i := range b.changes {
		if o := b.waiters[i].change.origin; o != nil {
			b.changes[i].Author = au.numbers[o.Author]
		}
	}
	return nil
}

// addAuthors finds the numbers of authors, or adds them to the log. Texts that the log cannot hold
// are changed, so that several authors may have the same number.
func (au *authors) addAuthors(ctx context.Context, missing []changelog.Author) (err error) {
	known := au.numbers
	if known == nil || len(known) > au.most {
		if known, err = au.log.Authors(ctx, au.most/2); err != nil {
			return err
		}
		au.numbers = known
	}
	var add []changelog.Author
	noted := make([]changelog.Author, len(missing))
	au.added.forget(time.Now())
	pending := allotted{by: map[string]int{}}
	for i, a := range missing {
		a = a.Plain()
		if a.Manager != "" && known[a] == 0 && !slices.Contains(add, a) {
			if au.added.allows(&pending, ownerOf(&a), au.most) {
				pending.count(ownerOf(&a), 1)
			} else {
				a.Manager = ""
			}
		}
		if noted[i] = a; known[a] == 0 && !slices.Contains(add, a) {
			add = append(add, a)
		}
	}
	if len(add) > 0 {
		numbers, err := au.log.AddAuthors(ctx, add)
		if err != nil {
			return err
		}
		for i, a := range add {
			known[a] = numbers[i]
		}
		for who, n := range pending.by {
			au.added.count(who, n)
		}
	}
	for i, a := range missing {
		known[a] = known[noted[i]]
	}
	return nil
}

func (au *authors) boundedAppend(d time.Duration, b *batch) (a changelog.Appended, err error) {
	err = au.within(d, func(ctx context.Context) (err error) {
		if err := au.identify(ctx, b); err != nil {
			return err
		}
		a, err = au.log.Append(ctx, b.changes)
		return err
	})
	return a, err
}
