package ui

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// searchPage is what was found.
type searchPage struct {
	*visit
	Query    string
	Kinds    []foundKind
	Groups   []foundGroup
	Total    int
	Unread   []swept
	Late     int // kinds for which there was no time
	Searched int // objects that were looked at
}

type foundKind struct{ Name, Resource, Link string }

// foundGroup are the objects of a kind that were found.
type foundGroup struct {
	Kind, Resource string
	Objects        []foundObject
	More           int
}

type foundObject struct {
	Namespace, Name, Link string
	rank                  int
}

const (
	searchTime = 3 * time.Second
	foundMost  = 50 // of a kind
)

// search looks for objects and kinds by their names.
func (v *visit) search() error {
	query := strings.TrimSpace(v.param("q"))
	b := &searchPage{visit: v, Query: query}
	if err := b.find(strings.ToLower(query)); err != nil {
		return err
	}
	if v.param("json") == "1" {
		return v.json(suggestions(b))
	}
	return v.show("search.html", page{Title: "Search " + query, Nav: "search", Body: b})
}

// find looks through all kinds that can be listed, in the namespace of the page or in all.
func (b *searchPage) find(text string) error {
	if text == "" {
		return nil
	}
	kinds, err := b.conn.sweepable(false)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if strings.Contains(k.Name(), text) || strings.Contains(strings.ToLower(k.Kind.Kind), text) || slices.Contains(k.ShortNames, text) {
			b.Kinds = append(b.Kinds, foundKind{k.Kind.Kind, k.Name(), b.link("kinds/" + url.PathEscape(k.Name()))})
		}
	}
	slices.SortFunc(b.Kinds, func(a, c foundKind) int { return strings.Compare(a.Name, c.Name) })
	ctx, cancel := context.WithTimeout(b.ctx(), searchTime)
	defer cancel()
	for _, one := range b.conn.sweep(ctx, kinds, b.namespace, sweepMost) {
		b.add(one, text)
		switch {
		case one.Err != nil && (errors.Is(one.Err, context.DeadlineExceeded) || ctx.Err() != nil):
			b.Late++
		case one.Err != nil || one.More:
			b.Unread = append(b.Unread, one)
		}
	}
	slices.SortFunc(b.Groups, func(a, c foundGroup) int {
		return cmp.Or(groupRank(a.Resource)-groupRank(c.Resource), strings.Compare(a.Kind, c.Kind))
	})
	return nil
}

// groupRank is the place of a kind in the navigation.
func groupRank(resource string) int {
	place := 0
	for _, g := range navGroups {
		if i := slices.Index(g.kinds, resource); i >= 0 {
			return place + i
		}
		place += len(g.kinds)
	}
	return place
}

// add takes what matches of a kind: the names that are the text first, then those that begin with it.
func (b *searchPage) add(one swept, text string) {
	g := foundGroup{Kind: one.Kind.Kind.Kind, Resource: one.Kind.Name()}
	b.Searched += len(one.Items)
	for i := range one.Items {
		o := &one.Items[i]
		at := strings.Index(strings.ToLower(o.Name), text)
		if at < 0 {
			continue
		}
		rank := min(at, 1) + 1
		if len(o.Name) == len(text) {
			rank = 0
		}
		g.Objects = append(g.Objects, foundObject{o.Namespace, o.Name, b.objectLink(g.Resource, o.Namespace, o.Name, ""), rank})
	}
	if len(g.Objects) == 0 {
		return
	}
	b.Total += len(g.Objects)
	slices.SortStableFunc(g.Objects, func(a, c foundObject) int {
		return cmp.Or(a.rank-c.rank, strings.Compare(a.Name, c.Name), strings.Compare(a.Namespace, c.Namespace))
	})
	if g.More = max(0, len(g.Objects)-foundMost); g.More > 0 {
		g.Objects = g.Objects[:foundMost]
	}
	b.Groups = append(b.Groups, g)
}

// suggestion is a line of the list below the search field.
type suggestion struct {
	Text  string `json:"text"`
	Kind  string `json:"kind"`
	Place string `json:"place,omitempty"`
	Link  string `json:"link"`
}

// suggestionsMost and suggestionsOfKind bound that list.
const suggestionsMost, suggestionsOfKind = 12, 4

// suggestions are the best of what was found: objects of exactly this name, kinds, then objects of each kind, those with the
// nearest names first.
func suggestions(b *searchPage) []suggestion {
	all := []suggestion{}
	for rank := range 3 {
		if rank == 1 {
			for _, k := range b.Kinds[:min(3, len(b.Kinds))] {
				all = append(all, suggestion{k.Name, "kind", k.Resource, k.Link})
			}
		}
		for _, g := range b.Groups {
			taken := 0
			for _, o := range g.Objects {
				if o.rank == rank && taken < suggestionsOfKind {
					taken++
					all = append(all, suggestion{o.Name, g.Kind, o.Namespace, o.Link})
				}
			}
		}
	}
	return all[:min(suggestionsMost, len(all))]
}
