package sqlstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Author is what changes by the same client and in the same way have in common. The log holds each
// once, and a row has its number.
type Author struct {
	User         string // as whom the request ran
	Impersonator string // who asked for it, if that is somebody else
	Verb         string // of the request
	Subresource  string
	Manager      string // field manager
}

// Origin is where a change comes from: its author, and the request's id in the audit log.
type Origin struct {
	Author
	AuditID string
}

type originKey struct{}

// WithOrigin returns a context whose commits say that they come from o, which nobody changes any more.
func WithOrigin(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// originOf returns where a change with this context comes from; nil if that is not known.
func (s *Store) originOf(ctx context.Context) *Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return o
	}
	return s.own
}

const (
	mostAuthorText = 512 // bytes of each text of an author
	mostAuditID    = 63
)

// plain returns a as the log can hold it: without bytes that are no text, and cut.
func (a Author) plain() Author {
	for _, text := range []*string{&a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager} {
		*text = plainText(*text, mostAuthorText)
	}
	return a
}

func plainText(text string, most int) string {
	if len(text) <= most && utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	for len(text) > most {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// auditBytes returns an audit id as the log holds it: the 16 bytes of a UUID, and other text as it is,
// but for a blank that tells 16 bytes of text from a UUID.
func auditBytes(id string) []byte {
	if id == "" {
		return nil
	}
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		return u[:]
	}
	id = strings.TrimRight(plainText(id, mostAuditID), " ")
	if len(id) == len(uuid.UUID{}) {
		id += " "
	}
	return []byte(id)
}

// AuditText is the opposite of what the log holds of an audit id.
func AuditText(stored []byte) string {
	if len(stored) != len(uuid.UUID{}) {
		return strings.TrimRight(string(stored), " ")
	}
	b := hex.EncodeToString(stored)
	return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
}

// authors knows the numbers that the log has for authors. It belongs to the committer's goroutine.
type authors struct {
	numbers map[Author]int64 // nil: not read yet
	added   allotted         // to the log, with managers
	most    int
	stale   atomic.Bool // the log may have others for the same numbers
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

// owner is who answers for an author: the one who has logged in. Whoever may make service accounts has as many as
// they like, but only in their namespace.
func (a *Author) owner() string {
	who := cmp.Or(a.Impersonator, a.User)
	if account, ok := strings.CutPrefix(who, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		return "system:serviceaccount:" + namespace
	}
	return who
}

// identify gives the changes of a batch the numbers of their authors. It first adds to the log those
// that it does not have, in a transaction of its own, which happens once for each author. On a full
// disk changes go without.
func (s *Store) identify(ctx context.Context, changes []Change) error {
	var missing []Author
	if s.authors.stale.Swap(false) {
		s.authors.numbers = nil
	}
	for i := range changes {
		c := &changes[i]
		if c.origin == nil {
			continue
		}
		c.audit = auditBytes(c.origin.AuditID)
		if c.author = s.authors.numbers[c.origin.Author]; c.author == 0 {
			missing = append(missing, c.origin.Author)
		}
	}
	if missing == nil || errors.Is(s.log.Condition(), ErrFull) {
		return nil
	}
	err := s.addAuthors(ctx, missing)
	if errors.Is(err, ErrFull) {
		return nil
	}
	if errors.Is(err, ErrUnknown) { // which is about the authors: nobody has written a change
		err = fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("note who makes a change: %w", err)
	}
	for i := range changes {
		if o := changes[i].origin; o != nil {
			changes[i].author = s.authors.numbers[o.Author]
		}
	}
	return nil
}

// addAuthors finds the numbers of authors, or adds them to the log. Texts that the log cannot hold
// are changed, so that several authors may have the same number.
func (s *Store) addAuthors(ctx context.Context, missing []Author) (err error) {
	known := s.authors.numbers
	if known == nil || len(known) > s.authors.most {
		if known, err = s.log.Authors(ctx, s.authors.most/2); err != nil {
			return err
		}
		s.authors.numbers = known
	}
	var add []Author
	noted := make([]Author, len(missing))
	s.authors.added.forget(time.Now())
	pending := allotted{by: map[string]int{}}
	for i, a := range missing {
		a = a.plain()
		if a.Manager != "" && known[a] == 0 && !slices.Contains(add, a) {
			if s.authors.added.allows(&pending, a.owner(), s.authors.most) {
				pending.count(a.owner(), 1)
			} else {
				a.Manager = ""
			}
		}
		if noted[i] = a; known[a] == 0 && !slices.Contains(add, a) {
			add = append(add, a)
		}
	}
	if len(add) > 0 {
		numbers, err := s.log.AddAuthors(ctx, add)
		if err != nil {
			return err
		}
		for i, a := range add {
			known[a] = numbers[i]
		}
		for who, n := range pending.by {
			s.authors.added.count(who, n)
		}
	}
	for i, a := range missing {
		known[a] = known[noted[i]]
	}
	return nil
}
