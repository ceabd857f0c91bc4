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
	// A page is what is looked at before the next rest, and is in memory for as long.
	pageObjects = 256
	pageBytes   = 4 << 20
	// leastRest follows each write: there are at most as many in a second as upstream's client makes.
	leastRest = time.Second / 400
)

var definitionsPrefix = object.Prefix(apiextensionsv1.GroupName, "customresourcedefinitions")

// migration is one try of a StorageVersionMigration. The next try begins anew, and finds that what this one has written
// needs no write.
type migration struct {
	*Migrator
	svm    *svmv1.StorageVersionMigration
	prefix string    // of the keys of the resource
	upTo   int64     // objects that were written later are stored in today's form
	begun  time.Time // when the work since the last rest began

	total, left int // objects of the resource; those that are not known to be in today's form
	// troubled objects cannot be written now, and perhaps later; trouble is why the first of them cannot.
	troubled int
	trouble  error
}

// kind returns the resource in its preferred version; nil if it is not served any more.
func (g *migration) kind() *kind.Kind {
	want := schema.GroupResource{Group: g.svm.Spec.Resource.Group, Resource: g.svm.Spec.Resource.Resource}
	for _, k := range g.config.Kinds.Set().Kinds {
		if k.GroupResource() == want {
			return k
		}
	}
	return nil
}

// upToDate tells whether a resource is stored in the version that its CustomResourceDefinition says. That is followed, and
// a moment after it has changed objects are still written in the version before.
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

// wanted tells whether nobody has deleted the migration.
func (g *migration) wanted() bool {
	svm, err := g.lister.Get(g.svm.Name)
	return err == nil && svm.UID == g.svm.UID
}

// run looks at all objects, in the order of keys, and writes those that are out of date. It rests as long as it has
// worked, so that half of the time at least is for others.
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
			if done, err := g.bring(ctx, k, e); done || err != nil {
				return err
			}
		}
		if err := g.rest(ctx, 0); err != nil {
			return err
		}
	}
	g.left = g.troubled // others have written or deleted some before their page came
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

// count sets how many objects there are, and how many of them may be out of date.
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

// page looks at the objects from a key on, and returns those that may be out of date, and the key at which the next page
// begins; empty: there is none.
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
		g.leaveOut(unreadable)
		return page, next, nil
	}
	return page, next, err
}

// leaveOut notes that there are objects that cannot be read: they stay as they are, and the migration does not succeed
// until they can be.
func (g *migration) leaveOut(unreadable *sqlstore.UnreadableError) {
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
