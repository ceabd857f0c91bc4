// Package suite is a test suite as operators have it, on controller-runtime's envtest.
package suite

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	env    *envtest.Environment
	config *rest.Config
	admin  client.Client
)

var widgets = schema.GroupVersionKind{Group: "suite.example.com", Version: "v1", Kind: "Widget"}

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	env = &envtest.Environment{
		CRDDirectoryPaths:     []string{"crd"},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: time.Minute}, // for a machine that is busy
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"webhook"}, MaxTime: time.Minute},
	}
	begun := time.Now()
	if config, err = env.Start(); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	fmt.Printf("the environment started in %v\n", time.Since(begun))
	defer func() {
		begun := time.Now()
		if stopErr := env.Stop(); stopErr != nil {
			err = fmt.Errorf("stop: %w", stopErr)
		}
		fmt.Printf("it stopped in %v\n", time.Since(begun))
	}()
	if admin, err = client.New(config, client.Options{}); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	mgr, err := newManager()
	if err != nil {
		return 0, err
	}
	go func() { ended <- mgr.Start(ctx) }()
	code = m.Run()
	cancel()
	return code, <-ended
}

// newManager makes a manager with the webhooks and the reconciler.
func newManager() (ctrl.Manager, error) {
	o := env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir}),
	})
	if err != nil {
		return nil, err
	}
	mgr.GetWebhookServer().Register("/color", &webhook.Admission{Handler: admission.HandlerFunc(color)})
	mgr.GetWebhookServer().Register("/size", &webhook.Admission{Handler: admission.HandlerFunc(size)})
	return mgr, ctrl.NewControllerManagedBy(mgr).For(newWidget("", 0)).Complete(&reconciler{mgr.GetClient()})
}

// color is red unless it is said.
func color(_ context.Context, req admission.Request) admission.Response {
	w, err := decode(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if _, found, _ := unstructured.NestedString(w.Object, "spec", "color"); !found {
		_ = unstructured.SetNestedField(w.Object, "red", "spec", "color")
	}
	changed, err := w.MarshalJSON()
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

// size must not be 13.
func size(_ context.Context, req admission.Request) admission.Response {
	w, err := decode(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if n, _, _ := unstructured.NestedInt64(w.Object, "spec", "size"); n == 13 {
		return admission.Denied("13 is unlucky")
	}
	return admission.Allowed("")
}

func decode(req admission.Request) (*unstructured.Unstructured, error) {
	w := new(unstructured.Unstructured)
	return w, w.UnmarshalJSON(req.Object.Raw)
}

// reconciler says that widgets are ready.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := newWidget("", 0)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ready, _, _ := unstructured.NestedBool(w.Object, "status", "ready"); ready {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(w.Object, true, "status", "ready"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

func newWidget(name string, size int64) *unstructured.Unstructured {
	w := new(unstructured.Unstructured)
	w.SetGroupVersionKind(widgets)
	w.SetNamespace("default")
	w.SetName(name)
	if size != 0 {
		w.Object["spec"] = map[string]any{"size": size}
	}
	return w
}
