package backup

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options say what a backup has.
type Options struct {
	Program string // version of this plinth
	History bool   // with old versions and deletions, as far as they are there
	// Pace is called after each chunk and may sleep; nil: there is no pause.
	Pace func()
	// Progress is called after each row; nil: nobody wants to know.
	Progress func(rows, about int64)
}

// Taken is what Take has written.
type Taken struct {
	Header
	Summary
	Size int64 // in bytes
}

// Take writes a backup of a log, as it is at one moment, while others write to the log.
func Take(ctx context.Context, from changelog.Source, to io.Writer, o Options) (t Taken, err error) {
	if from.Kind() != changelog.KindAPI {
		return t, fmt.Errorf("%w: it holds the keys of an etcd endpoint, of which etcdctl snapshot save makes a backup", changelog.ErrKind)
	}
	size, err := from.Size(ctx)
	if err != nil {
		return t, err
	}
	err = from.Freeze(ctx, func(z changelog.Frozen) error {
		t.Header = Header{Program: o.Program, Cluster: from.ClusterID(), Time: time.Now().UTC(), History: o.History, About: size.Rows}
		if o.History {
			t.About += size.Past
		}
		if err := t.Header.read(ctx, z); err != nil {
			return err
		}
		w, err := NewWriter(to, t.Header)
		if err == nil {
			err = o.copyAll(ctx, z, w, t.About)
		}
		if err == nil {
			t.Summary, err = w.Close()
			t.Size = w.Written()
		}
		return err
	})
	return t, err
}

// read reads what the log says of itself.
func (h *Header) read(ctx context.Context, z changelog.Frozen) error {
	head, err := z.Head(ctx)
	if err != nil {
		return err
	}
	h.Revision, h.Floor = head.Revision, head.Floor
	meta, err := z.Meta(ctx)
	if err != nil {
		return err
	}
	if h.Swept, err = strconv.ParseInt(meta[changelog.MetaSwept], 10, 64); err != nil {
		return fmt.Errorf("the database says %q in place of the revision up to which old versions are deleted", meta[changelog.MetaSwept])
	}
	marks := map[string]string{}
	for name, value := range meta {
		if mark, ok := strings.CutPrefix(name, changelog.MetaMark); ok {
			marks[mark] = value
		}
	}
	if changelog.IsHalfCopied(marks) {
		return fmt.Errorf("%w; make a backup of the database that has all", changelog.ErrHalfCopied)
	}
	h.Marks = marks
	if !h.History {
		return nil
	}
	if h.Kept, err = z.Kept(ctx); err == nil && len(h.Kept) == 0 {
		h.Kept = map[string]int64{"": h.Floor} // nothing is lost of what came later
	}
	return err
}

func (o *Options) copyAll(ctx context.Context, z changelog.Frozen, w *Writer, about int64) error {
	err := z.Writers(ctx, w.Author)
	if err != nil {
		return err
	}
	paced := int64(0)
	written := func() {
		if o.Progress != nil {
			o.Progress(w.summary.Rows+w.summary.Old, about)
		}
		if o.Pace != nil && w.written != paced {
			paced = w.written
			o.Pace()
		}
	}
	if o.History {
		err := z.Old(ctx, func(r *changelog.OldRow) error {
			defer written()
			return w.Old(r)
		})
		if err != nil {
			return err
		}
	}
	return z.All(ctx, !o.History, func(r *changelog.Row) error {
		defer written()
		return w.Row(r)
	})
}
