package storageversion

import (
	"context"
	"fmt"
	"strings"
	"time"

	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Types, reasons and messages of conditions are upstream's.

func hasEnded(svm *svmv1.StorageVersionMigration) bool {
	return meta.IsStatusConditionTrue(svm.Status.Conditions, string(svmv1.MigrationSucceeded)) ||
		meta.IsStatusConditionTrue(svm.Status.Conditions, string(svmv1.MigrationFailed))
}

func (g *migration) succeed(ctx context.Context) error {
	return g.store(ctx, g.running(nil), condition(svmv1.MigrationSucceeded, "StorageVersionMigrationSucceeded", "Migration completed"))
}

var migrationsPrefix = object.Prefix(svmv1.GroupName, "storageversionmigrations")

// transient separates a condition's message from the reason why the migration continues later.
const transient = "; transient error: "

// maxMessagePause is the longest pause between two writes of a reason that changes with each try.
const maxMessagePause = 10 * time.Minute

// retryLater writes to the status why the migration continues later.
func (g *migration) retryLater(ctx context.Context, err error) error {
	if g.messageRecent() {
		return err
	}
	if failed := g.store(ctx, g.running(err)); failed != nil {
		return failed
	}
	return fmt.Errorf("%w: %w", reconcile.ErrReported, err)
}

// messageRecent reports whether the status has a reason that is too recent to be replaced by another one.
func (g *migration) messageRecent() bool {
	told := meta.FindStatusCondition(g.svm.Status.Conditions, string(svmv1.MigrationRunning))
	e := g.config.Store.Get(migrationsPrefix + g.svm.Name)
	return told != nil && e != nil && strings.Contains(told.Message, transient) &&
		!reconcile.MessageDue(told.LastTransitionTime.Time, time.UnixMilli(e.At), time.Now(), maxMessagePause)
}

// failAt ends the migration because an object cannot be written.
func (g *migration) failAt(ctx context.Context, err error) error {
	return g.store(ctx, g.running(nil), failed(fmt.Sprintf("%d/%d not yet migrated. ", g.left, g.total), err))
}

// fail ends a migration before it has begun.
func (g *migration) fail(ctx context.Context, err error) error { return g.store(ctx, failed("", err)) }

func failed(before string, err error) metav1.Condition {
	return condition(svmv1.MigrationFailed, "StorageVersionMigrationFailed", fmt.Sprintf("%smigration encountered unhandled error: %s", before, err))
}

func (g *migration) running(trouble error) metav1.Condition {
	message := "The migration is running"
	switch {
	case g.total == 0:
	case g.left > 0:
		message += fmt.Sprintf(", %d/%d objects not yet migrated", g.left, g.total)
	default:
		message += fmt.Sprintf(", %d objects verified migrated", g.total)
	}
	if trouble != nil {
		message += transient + trouble.Error()
	}
	return condition(svmv1.MigrationRunning, "MigrationRunning", message)
}

func condition(what svmv1.MigrationConditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(what), Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// store writes conditions to the status if that changes it.
func (g *migration) store(ctx context.Context, conditions ...metav1.Condition) error {
	changed := false
	for _, c := range conditions {
		changed = meta.SetStatusCondition(&g.svm.Status.Conditions, c) || changed
	}
	if !changed {
		return nil
	}
	_, err := g.config.Migrations.UpdateStatus(ctx, g.svm, metav1.UpdateOptions{})
	return err
}
