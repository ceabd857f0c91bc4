package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
)

// setBackEvery is the pause between two checks.
const setBackEvery = time.Second

// namedInEvent is the most lost writes that an event names, because its note has at most 1024 bytes.
const namedInEvent = 8

// setBackJob makes an event in the namespace default when the database was set back while it was served. The
// store logs all lost writes.
func (c *Cluster) setBackJob() job {
	var reported *sqlstore.SetBack
	return job{every: setBackEvery, atOnce: true, do: func(ctx context.Context) error {
		now := c.config.Store.LastSetBack()
		if now == reported {
			return nil
		}
		err := c.reportSetBack(ctx, now)
		if err == nil {
			reported = now
		}
		return err // the next call tries again
	}, failed: "the event about a database that was set back could not be made; it is tried again"}
}

func (c *clients) reportSetBack(ctx context.Context, b *sqlstore.SetBack) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceDefault}
	note := fmt.Sprintf("The database of plinth was set back to an older state while it was served: %d acknowledged writes are gone. "+
		"Resource versions go on above %d; %d was the last one before.", len(b.Lost), b.Above, b.Served)
	if len(b.Lost) > 0 {
		note += " Gone: " + b.Named(namedInEvent) + "."
	}
	return c.reportFault(ctx, about, "DatabaseSetBack", note)
}
