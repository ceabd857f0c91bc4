package sqlstore

// Predicate is a condition on entries that a Format can tell from their bytes: what an entry has for
// Attribute is one of Terms. The attributes that there are, and their names, are the Format's.
type Predicate struct {
	Attribute string
	Terms     []string // each once
}

// Term is what one entry has for an attribute.
type Term struct {
	Is   Presence
	Text []byte // may be a part of the value; nobody may write to it
}

// Presence says whether there is a term.
type Presence uint8

const (
	Lacking Presence = iota // the entry satisfies no predicate about the attribute
	Present
	Unclear // the bytes do not tell: the entry may satisfy any predicate
)

// TermOf reads an attribute. It is quick: the tail calls it while readers wait.
type TermOf func(key string, value []byte) Term

func nothing(string, []byte) Term { return Term{} }

// attribute is what the state keeps for one attribute of a resource: an index, or the watches that wait for
// certain terms. Guarded by state.mu.
type attribute struct {
	name  string
	read  TermOf
	index *index // nil: there is none
}

// termOf returns what e has; nil has nothing.
func (r TermOf) termOf(e *Entry) Term {
	switch {
	case e == nil:
		return Term{}
	case e.form != nil && e.form.sealed != nil:
		return Term{Is: Unclear}
	}
	return r(e.Key, e.Value)
}
