package ui

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// shownVersion is a version in full.
type shownVersion struct {
	changeRow
	maker
	comparison
	View    string // empty: what changed, below each other; side: side by side; yaml: the whole object
	Lines   []textLine
	From    int64 // the version that it is compared with, if that is not the one before
	Alone   bool  // there is nothing to compare it with: it was created, deleted or copied
	Missing bool  // what was before is not kept
	Newest  bool
	Fault   *explained
}

// Done says what was done.
func (s *shownVersion) Done() string { return deedOf(s.Description) }

// shownVersion reads the version of an object at a moment, and what it is compared with. It is nil if there is none.
func (b *timelinePage) shownVersion(at past.Moment) (*shownVersion, error) {
	q := past.Query{Limit: 1}.ToObject(b.target()).Bound(historyv1.FieldUntil, at)
	var version *historyv1.Version
	for found, err := range b.past.History.Versions(b.ctx(), q) {
		if err != nil {
			return nil, err
		}
		version = &found
	}
	if version == nil {
		return nil, nil
	}
	s := &shownVersion{changeRow: b.changeRow(version.Description), maker: makerOf(version.Description), View: b.param("view")}
	s.Newest = b.Object != nil && b.Object.GetResourceVersion() == s.Rev()
	if err := b.fillVersion(s, version); err != nil {
		e := explain(err)
		s.Fault = &e
	}
	return s, nil
}

func (b *timelinePage) fillVersion(s *shownVersion, version *historyv1.Version) error {
	object, err := past.Object(version)
	if err != nil {
		return err
	}
	view := viewOf(b.subject)
	if s.From, err = b.from(); err != nil {
		return err
	}
	s.Alone = s.From == 0 && s.Action != historyv1.Changed
	if !s.Alone {
		if err := b.compareVersion(s, object, view); err != nil {
			return err
		}
	}
	if s.View == "yaml" || s.Alone || s.Missing {
		text, err := view.Text(object)
		s.Lines = linesOf(text)
		return err
	}
	return nil
}

func (b *timelinePage) from() (int64, error) {
	text := b.param("from")
	if text == "" {
		return 0, nil
	}
	m, err := revisionOf("from", text)
	return m.Revision, err
}

// compareVersion compares a version with the one before, or with the one that the address has; the older one comes first.
func (b *timelinePage) compareVersion(s *shownVersion, object *unstructured.Unstructured, view past.View) error {
	with := past.Moment{Revision: max(1, s.Revision-1)}
	if s.From > 0 {
		with.Revision = s.From
	}
	before, err := b.past.History.At(b.ctx(), b.target(), with)
	if apierrors.IsResourceExpired(err) || err == nil && before == nil && s.From == 0 {
		s.Missing = true
		return nil
	}
	if err != nil {
		return err
	}
	var other *unstructured.Unstructured
	if before != nil {
		if other, err = past.Object(before); err != nil {
			return err
		}
	}
	if s.Action == historyv1.Deleted {
		object = nil
	}
	if s.From > s.Revision {
		other, object = object, other
	}
	s.comparison, err = compareObjects(other, object, view)
	return err
}

// whatWasDone says what the version that is shown has done, to those who have just done it on another page.
func (b *timelinePage) whatWasDone(more string) string {
	c := b.Chosen
	switch {
	case c.Description.Manager == past.UndeleteManager && c.Action == historyv1.Created:
		text := fmt.Sprintf("Brought back as revision %d", c.Revision)
		if n, err := strconv.Atoi(more); err == nil && n > 0 {
			text += fmt.Sprintf(", with %d that went with it", n)
		}
		return text + "."
	case c.Action == historyv1.Deleted:
		return fmt.Sprintf("Deleted, at revision %d.", c.Revision)
	case b.Object != nil && b.Object.GetDeletionTimestamp() != nil:
		return "Its deletion has begun. It ends when the finalizers are gone."
	case c.Description.Manager == past.UndoManager:
		return fmt.Sprintf("Undone: revision %d has the earlier state.", c.Revision)
	}
	return ""
}
