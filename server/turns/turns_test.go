package turns_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/turns"
)

// A time in the future, as before a clock was set back, does not put off the work until then.
func TestClockSetBack(t *testing.T) {
	c := apitest.Open(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	holder, ahead, seconds := "another", metav1.NewMicroTime(time.Now().Add(time.Hour)), int32(1)
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &holder, &ahead, &seconds
	leases := c.Client.CoordinationV1().Leases("kube-system")
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	turn := turns.Turn{Name: "work", Every: 100 * time.Millisecond, Identity: "here", Client: c.Config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	worked := false
	if err := turn.Run(ctx, func(context.Context) error {
		worked = true
		cancel()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !worked {
		t.Error("the work was not done")
	}
}

// TestAlone has nobody agree on a turn, because the Lease cannot be written: its namespace is missing. The work is done all
// the same, again and again, and also when it fails.
func TestAlone(t *testing.T) {
	c := apitest.Open(t)
	turn := turns.Turn{Name: "work", Every: 20 * time.Millisecond, Identity: "here", Client: c.Config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	done := 0
	if err := turn.Run(ctx, func(context.Context) error {
		if done++; done == 3 {
			cancel()
		}
		return errors.New("the work fails")
	}); err != nil {
		t.Fatal(err)
	}
	if done < 3 {
		t.Errorf("the work was done %d times", done)
	}
}

// TestAloneBeside has two servers that cannot agree on a turn. What one has done the other leaves.
func TestAloneBeside(t *testing.T) {
	c := apitest.Open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var times, asked int
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if times == 0 {
			return false
		}
		if asked++; asked > 20 {
			cancel()
		}
		return true
	}
	var servers sync.WaitGroup
	for range 2 {
		turn := turns.Turn{Name: "work", Every: 20 * time.Millisecond, Identity: "here", Client: c.Config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Done: done}
		servers.Go(func() {
			if err := turn.Run(ctx, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				times++
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	servers.Wait()
	if times < 1 || times > 2 || asked <= 20 { // 2: both began at once
		t.Errorf("the work was done %d times, and asked for %d times", times, asked)
	}
}
