package controllers

import (
	"context"

	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// finishedWorkers is upstream's number.
const finishedWorkers = 5

// runFinished runs upstream's controller that deletes Jobs that have been finished for as
// long as their ttlSecondsAfterFinished says.
func (m *Manager) runFinished(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		c := ttlafterfinished.New(ctx, batch.New(s, "", nil).V1().Jobs(), client)
		s.Start(nil)
		c.Run(ctx, finishedWorkers)
		return nil
	})
}
