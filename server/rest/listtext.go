package rest

import (
	"bytes"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// The text of an indented list is the text of its head, of each item, and of its tail, each indented separately as in a
// list of one item. The same holds for YAML, whose fields are sorted by name.

// indentation is how items stand in a list in one of these encodings.
type indentation struct {
	mark      []byte // an item that is null
	before    []byte // what is before an item if it is the only one of a list
	after     []byte // likewise
	separator []byte
}

var (
	indentedJSON = indentation{
		mark:   []byte(`null`),
		before: []byte("{\n  \"items\": [\n    "), after: []byte("\n  ]\n}"), separator: []byte(",\n    "),
	}
	indentedYAML = indentation{
		mark:   []byte("- null\n"),
		before: []byte("items:\n"),
	}
)

// text writes the list in indented JSON or YAML, piece by piece.
func (l *listWriter) text() error {
	in := &indentedJSON
	if l.q.out.MediaType == response.MediaYAML {
		in = &indentedYAML
	}
	head, tail, err := l.textEnds(in)
	if err != nil {
		return err
	}
	item := l.items()
	if err := l.renderHeld(item); err != nil {
		return err
	}
	first := true
	return l.send(head, l.p.entries, tail, func(b []byte, e *sqlstore.Entry) ([]byte, error) {
		open, rest, err := item(e)
		if err != nil {
			return b, err
		}
		if !first {
			b = append(b, in.separator...)
		}
		first = false
		one := append(append(append([]byte(`{"items":[`), open...), rest...), `]}`...)
		if one, err = response.Finish(one, l.q.out); err != nil {
			return b, err
		}
		return append(b, one[len(in.before):len(one)-len(in.after)]...), nil
	})
}

// textEnds returns the text before the first item and after the last; head is the whole list if there are no items.
func (l *listWriter) textEnds(in *indentation) (head, tail []byte, err error) {
	head, tail = l.ends()
	if len(l.p.entries) > 0 {
		head = append(head, "null"...)
	}
	all, err := response.Finish(append(head, tail[:len(tail)-1]...), l.q.out)
	if err != nil || len(l.p.entries) == 0 {
		return all, nil, err
	}
	// Only the items are null, and only they are a sequence.
	head, tail, _ = bytes.Cut(all, in.mark)
	return head, tail, nil
}
