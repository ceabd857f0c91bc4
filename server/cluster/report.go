package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporter is the reporting controller of events.
const reporter = "plinth"

// reportFault makes an event about a fault in an object that somebody has to correct. Its name is a hash of
// its contents, so that no server makes the same event again as long as it exists.
func (c *clients) reportFault(ctx context.Context, about corev1.ObjectReference, reason, note string) error {
	return c.recordEvent(ctx, corev1.EventTypeWarning, about, reason, note, "")
}

// recordEvent makes a new event for each occasion.
func (c *clients) recordEvent(ctx context.Context, eventType string, about corev1.ObjectReference, reason, note, occasion string) error {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(about.Kind + "\x00" + reason + "\x00" + note + occasion))
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: about.Name + "." + hex.EncodeToString(sum[:8])},
		EventTime:           metav1.NewMicroTime(time.Now()),
		ReportingController: reporter,
		ReportingInstance:   reporter + "-" + host,
		Action:              "Repair",
		Type:                eventType,
		Reason:              reason,
		Note:                strings.ToValidUTF8(note[:min(len(note), 1024)], ""),
		Regarding:           about,
	}
	_, err := c.events.Events(namespace).Create(ctx, e, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("report on %s %s: %w", about.Kind, about.Name, err)
	}
	return nil
}
