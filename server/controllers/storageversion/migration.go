package storageversion

import (
	"context"
	"errors"
	"slices"
	"time"

	svmv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	// pageObjects is the number of objects that are read before the next rest and are in memory together.
	pageObjects = 256
	pageBytes   = 4 << 20
	// leastRest is the shortest rest after a write, so that there are at most as many writes in a second as
	// upstream's client makes.
	leastRest = time.Second / 400
)

var definitionsPrefix = object.Prefix(apiextensionsv1.GroupName, "customresourcedefinitions")

// migration is one try of a StorageVersionMigration. The next try begins anew, and finds that the objects
// which this one has written need no write.
type migration struct {
	*Migrator
	svm    *svmv1.StorageVersionMigration
	prefix string    // of the keys of the resource
	upTo   int64     // later writes have stored their objects in today's form
	begun  time.Time // when the work since the last rest began

	total, left int // objects of the resource, and those that may be in another form
	// troubled is the number of objects that cannot be written now and perhaps can later; trouble is the
	// reason for the first of them.
	troubled int
	trouble  error
}

// kind returns the resource in its preferred version; nil if it is no longer served.
func (g *migration) kind() *kind.Kind {
	want := schema.GroupResource{Group: g.svm.Spec.Resource.Group, Resource: g.svm.Spec.Resource.Resource}
	for _, k := range g.config.Kinds.Set().Kinds {
		if k.GroupResource() == want {
			return k
		}
	}
	return nil
}

// upToDate reports whether a resource is stored in the version that its CustomResourceDefinition names. For a
// moment after a definition has changed, this server still writes the previous version.
func (g *migration) upToDate(k *kind.Kind) bool {
	if k.Custom == nil {
		return true
	}
	e := g.config.Store.Get(definitionsPrefix + k.GroupResource().String())
	if e == nil {
		return false
	}
	crd, err := lister.DecodeAnew[apiextensionsv1.CustomResourceDefinition](e)
	return err == nil && slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Storage && v.Name == k.Stored.Version
	})
}

// exists reports whether the migration still exists.
func (g *migration) exists() bool {
	svm, err := g.lister.Get(g.svm.Name)
	return err == nil && svm.UID == g.svm.UID
}

// run checks all objects in the order of their keys, and rewrites those that are out of date. It rests as
// long as it has worked, so that at least half of the time is left for other requests.
func (g *migration) run(ctx context.Context) error {
	g.begun = time.Now()
	if err := g.count(ctx); err != nil {
		return err
	}
	next := g.prefix
	for next != "" {
		k := g.kind()
		if k == nil {
			break
		}
		var page []*sqlstore.Entry
		var err error
		if page, next, err = g.page(ctx, next); err != nil {
			return err
		}
		for _, e := range page {
			if done, err := g.rewrite(ctx, k, e); done || err != nil {
				return err
			}
		}
		if err := g.rest(ctx, 0); err != nil {
			return err
		}
	}
	g.left = g.troubled // other clients have written or deleted some of them before
	if g.trouble != nil {
		return g.retryLater(ctx, g.trouble)
	}
	return g.succeed(ctx)
}

func (g *migration) rest(ctx context.Context, least time.Duration) error {
	err := sleep.For(ctx, max(time.Since(g.begun), least))
	g.begun = time.Now()
	return err
}

// count counts the objects, and those of them that may be out of date.
func (g *migration) count(ctx context.Context) error {
	view := g.config.Store.Current(g.prefix)
	from, to := changelog.RangeOf(g.prefix)
	total, err := view.Count(ctx, from, to)
	if err != nil {
		return err
	}
	g.total = int(total)
	err = view.Outline(ctx, from, to, func(e *sqlstore.Entry) bool {
		if e.Revision <= g.upTo {
			g.left++
		}
		return true
	})
	var unreadable *sqlstore.UnreadableError
	if errors.As(err, &unreadable) {
		for _, u := range unreadable.Objects {
			if u.Revision <= g.upTo {
				g.left++
			}
		}
		return nil
	}
	return err
}

// page reads the objects from a key on. It returns those that may be out of date, and the key of the next
// page; empty: there is none.
func (g *migration) page(ctx context.Context, from string) (page []*sqlstore.Entry, next string, err error) {
	_, to := changelog.RangeOf(g.prefix)
	seen, size := 0, 0
	err = g.config.Store.Current(g.prefix).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		if seen == pageObjects || size >= pageBytes {
			next = e.Key
			return false
		}
		seen, size = seen+1, size+len(e.Value)
		if e.Revision <= g.upTo {
			page = append(page, e)
		}
		return true
	})
	var unreadable *sqlstore.UnreadableError
	if errors.As(err, &unreadable) {
		g.noteUnreadable(unreadable)
		return page, next, nil
	}
	return page, next, err
}

// noteUnreadable notes that some objects cannot be read. They stay as they are, and the migration does not
// succeed until they can be read.
func (g *migration) noteUnreadable(unreadable *sqlstore.UnreadableError) {
	for _, u := range unreadable.Objects {
		if u.Revision <= g.upTo {
			g.note(u)
		}
	}
}

func (g *migration) note(trouble error) {
	g.troubled++
	if g.trouble == nil {
		g.trouble = trouble
	}
}
