package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/site-operator/v1"
)

const finalizer = "web.example.com/published"

type reconciler struct {
	client.Client
	events record.EventRecorder
}

func addReconciler(mgr ctrl.Manager) error {
	r := &reconciler{mgr.GetClient(), mgr.GetEventRecorderFor("site-operator")}
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Site{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := new(v1.Site)
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, site)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, site) // its event comes back
	}
	if err := publish(site); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.applyPages(ctx, site); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply pages: %w", err)
	}
	deployment, err := r.deploy(ctx, site)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("deploy: %w", err)
	}
	return ctrl.Result{}, r.setStatus(ctx, site, deployment)
}

// finalize takes back what is outside of the cluster.
func (r *reconciler) finalize(ctx context.Context, site *v1.Site) error {
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		return nil
	}
	if err := os.Remove(publishedAs(site)); err != nil && !os.IsNotExist(err) {
		return err
	}
	before := site.DeepCopyObject().(*v1.Site)
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(r.Patch(ctx, site, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

func publish(site *v1.Site) error {
	return os.WriteFile(publishedAs(site), []byte(strings.Join(site.Spec.Hosts, "\n")), 0o600)
}

func publishedAs(site *v1.Site) string {
	return filepath.Join(*published, site.Namespace+"."+site.Name)
}

// applyPages makes the ConfigMap by server-side apply.
func (r *reconciler) applyPages(ctx context.Context, site *v1.Site) error {
	pages := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-pages"},
		Data:       site.Spec.Pages,
	}
	if err := controllerutil.SetControllerReference(site, pages, r.Scheme()); err != nil {
		return err
	}
	return r.Patch(ctx, pages, client.Apply, client.FieldOwner("site-operator"), client.ForceOwnership)
}

// deploy makes the Deployment by create or update.
func (r *reconciler) deploy(ctx context.Context, site *v1.Site) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		labels := map[string]string{"site": site.Name}
		d.Spec.Replicas = site.Spec.Replicas
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		if len(d.Spec.Template.Spec.Containers) == 0 {
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
		}
		d.Spec.Template.Spec.Containers[0].Image = site.Spec.Image.Repository + ":" + site.Spec.Image.Tag
		return controllerutil.SetControllerReference(site, d, r.Scheme())
	})
	if result == controllerutil.OperationResultCreated {
		r.events.Eventf(site, corev1.EventTypeNormal, "Deployed", "made Deployment %s", d.Name)
	}
	return d, err
}

func (r *reconciler) setStatus(ctx context.Context, site *v1.Site, d *appsv1.Deployment) error {
	before := site.DeepCopyObject().(*v1.Site)
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Deploying", ObservedGeneration: site.Generation}
	if site.Spec.Replicas != nil && d.Status.ReadyReplicas >= *site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Serving"
	}
	ready.Message = fmt.Sprintf("%d replicas are ready", d.Status.ReadyReplicas)
	meta.SetStatusCondition(&site.Status.Conditions, ready)
	site.Status.ObservedGeneration = site.Generation
	site.Status.Replicas = d.Status.ReadyReplicas
	site.Status.Selector = "site=" + site.Name
	if equality.Semantic.DeepEqual(before.Status, site.Status) {
		return nil
	}
	return r.Status().Update(ctx, site)
}
