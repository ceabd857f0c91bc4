// Package storageversion rewrites objects that are not stored in today's form. That is the work of a
// StorageVersionMigration. It is upstream's SVMController on the store: upstream's needs all objects of a
// resource in memory, whereas this one finds the objects that a write would store differently, and writes
// only those, through the API.
//
// Upstream's other two controllers of StorageVersionMigrations run as they are. They choose the next
// migration of a resource, write to its status up to which resourceVersion it goes, and update the
// CustomResourceDefinition after it.
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
	// appears is how long after the creation of a migration its resource may appear, as in upstream: the
	// CustomResourceDefinition may be just as new.
	appears = time.Minute
)

// Config says what a Migrator works on.
type Config struct {
	Migrations client.StorageVersionMigrationInterface
	Informer   informers.StorageVersionMigrationInformer
	Objects    dynamic.Interface // writes the objects
	Store      *sqlstore.Store
	Kinds      *kind.Registry
	Logger     *slog.Logger
}

// Migrator executes StorageVersionMigrations, one after the other.
type Migrator struct {
	config Config
	lister listers.StorageVersionMigrationLister
	queue  reconcile.Queue
}

// New returns a Migrator of the migrations that config.Informer knows. Call Run next.
func New(config Config) (*Migrator, error) {
	m := &Migrator{
		config: config,
		lister: config.Informer.Lister(),
		queue:  reconcile.NewNamedQueue(names.StorageVersionMigratorController, retryFirst, retryMost),
	}
	// A migration begins when it gets a status.resourceVersion, which is set once. Other changes must not
	// restart it: failures are written to the status, so that each failure would cause an immediate retry.
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

// sync executes a migration if it is the next one of its resource and has not ended.
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
