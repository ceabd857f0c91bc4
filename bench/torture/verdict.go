package torture

import "fmt"

// Guarantees that can be broken. docs/guarantees.md says what they are for users.
const (
	Durable      = "acknowledged writes are durable"
	Once         = "a write happens once, or not if it was refused"
	Linearizable = "calls on an object are linearizable"
	Fresh        = "reads of the newest state see everything before them"
	ExactState   = "a list is the exact state at its revision"
	Answers      = "an answer shows a version that there was"
	Complete     = "a watch is told of every change, once and in order"
	Resumable    = "old versions stay readable for --history"
	Bookmarks    = "a bookmark is true"
	SameMemory   = "every replica has in memory what the database has"
	Reason       = "a request that is in order is not refused"
	Ends         = "a watch comes to the end"
)

// Broken is a guarantee that does not hold.
type Broken struct {
	Guarantee string
	Text      string
	Key       string   `json:",omitempty"` // of the object
	Calls     []string `json:",omitempty"` // ids of those to blame
	Watch     string   `json:",omitempty"`
}

// same tells whether two are the same fault, seen in histories of which one is a part of the other.
func (b *Broken) same(other *Broken) bool {
	return b.Guarantee == other.Guarantee && b.Key == other.Key && b.Watch == other.Watch
}

// mostBroken bounds a verdict: one fault causes others.
const mostBroken = 50

type verdict struct{ broken []Broken }

func (v *verdict) full() bool { return len(v.broken) >= mostBroken }

func (v *verdict) add(b Broken, format string, a ...any) {
	if !v.full() {
		b.Text = fmt.Sprintf(format, a...)
		v.broken = append(v.broken, b)
	}
}

// String is the call and its answer in one line.
func (c *Call) String() string {
	text := fmt.Sprintf("%s %s", c.Kind, c.Key)
	if c.Sent != (Content{}) {
		text += fmt.Sprintf(" %s", c.Sent)
	}
	if c.Expect != 0 {
		text += fmt.Sprintf(" if at %d", c.Expect)
	}
	if c.Read != Newest {
		text += " " + c.Read
	}
	if c.At != 0 {
		text += fmt.Sprintf(" %d", c.At)
	}
	switch {
	case c.Status == 0:
		text += ": no answer"
	case c.OK() && (c.Kind == List || c.Kind == Pages):
		text += fmt.Sprintf(": %d objects at %d", len(c.Items), c.Revision)
	case c.OK() && len(c.Items) == 1:
		text += fmt.Sprintf(": %s at %d", c.Items[0].Content, c.Items[0].Revision)
	default:
		text += fmt.Sprintf(": %d", c.Status)
	}
	return fmt.Sprintf("%s (%s, client %d, replica %d, %.3fs to %.3fs)", text, c.ID, c.Client, c.Replica, c.Begin.Seconds(), c.End.Seconds())
}

func (c Content) String() string {
	switch {
	case c.A == "":
		return fmt.Sprintf("%q", c.V)
	case c.V == "":
		return fmt.Sprintf("a=%q", c.A)
	}
	return fmt.Sprintf("%q a=%q", c.V, c.A)
}
