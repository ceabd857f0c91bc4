package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// alarmEvery is the pause between two checks of the disk.
const alarmEvery = time.Second

// diskFull is the text of the event. It has no figures, so that equal texts make one event within an hour.
const diskFull = "The disk of plinth's database is nearly full. Until there is room, only deletes " +
	"and changes to objects that are being deleted are taken: delete objects, or make room on the disk."

// diskJob makes an event in the namespace default when the disk of the database is nearly full. The store
// writes the log record.
func (c *Cluster) diskJob() job {
	reported := false
	return job{every: alarmEvery, atOnce: true, do: func(ctx context.Context) error {
		full := errors.Is(c.config.Store.Condition(), changelog.ErrFull)
		reported = full && (reported || c.reportFull(ctx) == nil) // if the event failed, the next call tries again
		return nil
	}}
}

func (c *clients) reportFull(ctx context.Context) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceDefault}
	return c.reportFault(sqlstore.Urgent(ctx), about, "DatabaseDiskFull", diskFull)
}

// Tell makes an event in the namespace default when an alarm of this server begins or ends.
func (c *Cluster) Tell(ctx context.Context, change alarms.Change) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceDefault}
	host, _ := os.Hostname()
	eventType, reason, note := corev1.EventTypeWarning, change.Reason, fmt.Sprintf("Alarm %s of plinth on %s: %s", change.Name, host, change.Text)
	if change.Detail != "" {
		note += ": " + change.Detail
	}
	if !change.Begins {
		eventType, reason = corev1.EventTypeNormal, change.Reason+"Ended"
		note = fmt.Sprintf("Alarm %s of plinth on %s has ended.", change.Name, host)
	}
	return c.recordEvent(sqlstore.Urgent(ctx), eventType, about, reason, note, c.config.Here.Identity+time.Now().String())
}
