// Package storageversion stores objects anew that are stored in another form than today's: the work of a
// StorageVersionMigration. It is upstream's SVMController, which needs all objects of a resource in memory, on the
// store: it finds the objects that a write would store differently, and writes only those, through the API.
//
// Upstream's other two controllers of StorageVersionMigrations run beside it. They choose which migration of a resource
// is next, and note in its status up to which resourceVersion it goes. What follows for a CustomResourceDefinition is
// theirs, too.
package storageversion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	svmv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	informers "k8s.io/client-go/informers/storagemigration/v1"
	client "k8s.io/client-go/kubernetes/typed/storagemigration/v1"
	listers "k8s.io/client-go/listers/storagemigration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	// The pauses before a migration is tried again are upstream's.
	retryFirst = 5 * time.Millisecond
	retryMost  = 1000 * time.Second
	// appears is how long after a migration was made its resource may come, as upstream says: its
	// CustomResourceDefinition may be as new.
	appears = time.Minute
)

// Config says on what a Migrator works.
type Config struct {
	Migrations client.StorageVersionMigrationInterface
	Informer   informers.StorageVersionMigrationInformer
	Objects    dynamic.Interface // writes the objects
	Store      *sqlstore.Store
	Kinds      *kind.Registry
	Logger     *slog.Logger
}

// Migrator works off StorageVersionMigrations, one after the other.
type Migrator struct {
	config Config
	lister listers.StorageVersionMigrationLister
	queue  reconcile.Queue
}

// New returns a Migrator that hears of migrations by config.Informer. Run must follow.
func New(config Config) (*Migrator, error) {
	m := &Migrator{
		config: config,
		lister: config.Informer.Lister(),
		queue:  reconcile.NewNamedQueue(names.StorageVersionMigratorController, retryFirst, retryMost),
	}
	// A migration begins when it has a status.resourceVersion, which is set once. To begin again after each other
	// change would be to try again at once after each failure, because failures are written to the status.
	_, err := config.Informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) { m.queue.Add(added.(*svmv1.StorageVersionMigration).Name) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*svmv1.StorageVersionMigration), after.(*svmv1.StorageVersionMigration)
			if was.UID != is.UID || was.Status.ResourceVersion != is.Status.ResourceVersion {
				m.queue.Add(is.Name)
			}
		},
	})
	return m, err
}

// Run works until ctx ends.
func (m *Migrator) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, m.queue.ShutDown)
	defer stop()
	reconcile.Work(ctx, m.config.Logger, "StorageVersionMigration", m.queue, m.sync)
}

// sync carries out a migration, if it is the turn of that and it has not ended.
func (m *Migrator) sync(ctx context.Context, name string) error {
	svm, err := m.lister.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if hasEnded(svm) || svm.Status.ResourceVersion == "" {
		return nil
	}
	g := &migration{Migrator: m, svm: svm}
	k := g.kind()
	if k == nil {
		if time.Since(svm.CreationTimestamp.Time) < appears {
			return fmt.Errorf("there is no resource %s yet", svm.Spec.Resource.String())
		}
		return g.fail(ctx, errors.New("unable to obtain GVR from discovery"))
	}
	if !g.upToDate(k) {
		return fmt.Errorf("the definition of %s has changed, and is not served yet", svm.Spec.Resource.String())
	}
	if g.upTo, err = strconv.ParseInt(svm.Status.ResourceVersion, 10, 64); err != nil {
		return g.fail(ctx, fmt.Errorf("error comparing resource versions between GC and SVM resource: %w", err))
	}
	if head, err := m.config.Store.Sync(ctx); err != nil {
		return err
	} else if head < g.upTo {
		return fmt.Errorf("the newest change is %d, before resourceVersion %d of the migration", head, g.upTo)
	}
	g.prefix = k.Prefix()
	return g.run(ctx)
}
