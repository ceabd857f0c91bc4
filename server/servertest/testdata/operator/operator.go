// Package operator is a small operator, as an example of testing one with plinth: it
// keeps a ConfigMap named "greeting" in every namespace that has the label greet.
package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Run runs the operator until ctx ends.
func Run(ctx context.Context, config *clientrest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	defer factory.Shutdown()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	context.AfterFunc(ctx, queue.ShutDown)
	add := func(obj any) { queue.Add(obj.(*corev1.Namespace).Name) }
	namespaces := factory.Core().V1().Namespaces()
	_, err = namespaces.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), namespaces.Informer().HasSynced) {
		return ctx.Err()
	}
	for {
		name, stopped := queue.Get()
		if stopped {
			return nil
		}
		ns, err := namespaces.Lister().Get(name)
		if err == nil {
			err = greet(ctx, client, ns)
		}
		if err == nil || apierrors.IsNotFound(err) {
			queue.Forget(name)
		} else {
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// greet makes what one namespace should have.
func greet(ctx context.Context, client kubernetes.Interface, ns *corev1.Namespace) error {
	name, ok := ns.Labels["greet"]
	if !ok {
		return nil
	}
	maps := client.CoreV1().ConfigMaps(ns.Name)
	want := map[string]string{"text": fmt.Sprintf("Hello, %s!", name)}
	found, err := maps.Get(ctx, "greeting", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "greeting"}, Data: want}
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
		return err
	}
	if err != nil || found.Data["text"] == want["text"] {
		return err
	}
	found.Data = want
	_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
	return err
}
