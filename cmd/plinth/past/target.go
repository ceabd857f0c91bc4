package past

import (
	"slices"
	"strings"
)

// Target is an object, or all objects of a kind if it has no name, or all objects if it has no kind.
type Target struct {
	Kind      Kind
	Namespace string // empty: in no namespace; or in any one, if there is no name
	Name      string
	Anywhere  bool // objects of that name in any namespace
}

func (t Target) String() string { return t.Kind.Name() + "/" + t.Name }

// words are the arguments of a command that is about the object.
func (t Target) words() string { return t.String() + t.flag() }

// flag is the flag for the namespace.
func (t Target) flag() string {
	if t.Namespace == "" {
		return ""
	}
	return " -n " + t.Namespace
}

// Words are a type, and the name of an object if one is meant, as a user writes them.
type Words struct{ Type, Name string }

// SplitWords reads TYPE, TYPE NAME... and TYPE/NAME....
func SplitWords(args []string) (all []Words, err error) {
	joined := 0
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			continue
		}
		if joined++; kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, mistakef("%q: write TYPE/NAME, such as deployments/web", arg)
		}
		all = append(all, Words{kind, name})
	}
	switch {
	case slices.Contains(args, ""):
		return nil, mistakef("an argument is empty: write TYPE/NAME or TYPE NAME")
	case joined == len(args):
		return all, nil
	case joined > 0:
		return nil, mistakef("%q: write either TYPE/NAME or TYPE NAME", args)
	case len(args) == 1:
		return []Words{{Type: args[0]}}, nil
	}
	for _, name := range args[1:] {
		all = append(all, Words{args[0], name})
	}
	return all, nil
}

// In returns the target of that kind in a namespace, which kinds without namespaces ignore. Of a kind
// that is gone nobody knows that, so the namespace counts.
func (k Kind) In(namespace, name string) Target {
	if !k.Namespaced && k.Kind != "" {
		namespace = ""
	}
	return Target{Kind: k, Namespace: namespace, Name: name}
}
