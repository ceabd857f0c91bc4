package controllers

import (
	"context"
	"fmt"
	"sync"

	svmv1 "k8s.io/api/storagemigration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers/storagemigration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/pkg/controller/storageversionmigrator"

	"github.com/plinth-io/plinth/server/controllers/storageversion"
	"github.com/plinth-io/plinth/sqlstore/object"
)

var migrationsPrefix = object.Prefix(svmv1.GroupName, "storageversionmigrations")

// runMigrations executes StorageVersionMigrations. It starts with the first migration, because most clusters
// have none.
func (m *Manager) runMigrations(ctx context.Context) error {
	if err := awaitFirst(ctx, m.config.Store, migrationsPrefix); err != nil || ctx.Err() != nil {
		return err
	}
	return m.onInformers(ctx, m.migrate)
}

// migrate runs the three controllers that kube-controller-manager runs under this name, two of which are upstream's.
func (m *Manager) migrate(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
	objects, err := dynamic.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("dynamic client: %w", err)
	}
	heads, err := metadata.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("metadata client: %w", err)
	}
	definitions, err := apiextensions.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("client of definitions: %w", err)
	}
	migrations := storagemigration.New(s, "", nil).V1().StorageVersionMigrations()
	rewrites, err := storageversion.New(storageversion.Config{
		Migrations: client.StoragemigrationV1().StorageVersionMigrations(), Informer: migrations,
		Objects: objects, Store: m.config.Store, Kinds: m.config.API.Kinds, Logger: m.config.Logger,
	})
	if err != nil {
		return err
	}
	definitionMigrations := storageversionmigrator.NewCustomResourceController(ctx, client, migrations, definitions.ApiextensionsV1().CustomResourceDefinitions())
	revisions := storageversionmigrator.NewResourceVersionController(ctx, client, client.Discovery(), heads, migrations, NewMapper(m.config.API.Kinds))
	s.Start(nil)
	var running sync.WaitGroup
	running.Go(func() { definitionMigrations.Run(ctx) })
	running.Go(func() { revisions.Run(ctx) })
	rewrites.Run(ctx)
	running.Wait()
	return nil
}
