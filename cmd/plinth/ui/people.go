package ui

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// maker is who made a change, as lists of versions show it.
type maker struct {
	Name  string // in full
	Short string
	Mark  string // a letter
	Color string // a class; people have one of some colours, and parts of the cluster another
}

// colors is how many colours people have.
const colors = 8

func makerOf(d historyv1.Description) maker {
	m := maker{Name: past.Person(d), Short: past.Person(d), Color: "who-s", Mark: "⚙"}
	if account, ok := strings.CutPrefix(m.Name, "system:serviceaccount:"); ok {
		m.Short = strings.Replace(account, ":", "/", 1)
	}
	if strings.HasPrefix(m.Name, "system:") || d.User == "" {
		if d.User == "" {
			m.Short, m.Mark = "nobody knows who", "?"
		}
		return m
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.Name))
	m.Color = "who-" + strconv.Itoa(int(hash.Sum32()%colors))
	for _, r := range d.User { // of an impersonation the one who was meant
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			m.Mark = string(unicode.ToUpper(r))
			break
		}
	}
	return m
}

// deedOf says what a change did.
func deedOf(d historyv1.Description) string {
	switch d.Action {
	case historyv1.Created:
		return "created it"
	case historyv1.Deleted:
		return "deleted it"
	case historyv1.Copied:
		return "last wrote it, before it was copied here"
	}
	if strings.HasPrefix(d.Verb, "delete") { // it has finalizers
		return "asked to delete it"
	}
	return "changed it"
}
