package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
)

// alarmEvery is how often plinth looks whether the disk is full.
const alarmEvery = time.Second

// diskFull is what the event says. It has no figures, so that one event stands for all of an
// hour's.
const diskFull = "The disk of plinth's database is nearly full. Until there is room, only deletes " +
	"and changes to objects that are being deleted are taken: delete objects, or make room on the disk."

// diskJob makes an event in the namespace default when the database's disk is nearly full.
// The store logs it.
func (c *Cluster) diskJob() job {
	reported := false
	return job{every: alarmEvery, atOnce: true, do: func(ctx context.Context) error {
		full := errors.Is(c.config.Store.Condition(), sqlstore.ErrFull)
		reported = full && (reported || c.reportFull(ctx) == nil) // a failed event is tried again
		return nil
	}}
}

func (c *clients) reportFull(ctx context.Context) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceDefault}
	return c.report(sqlstore.Urgent(ctx), about, "DatabaseDiskFull", diskFull)
}
