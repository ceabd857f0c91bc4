// The site-operator is a small operator as controller-runtime's users write them. It keeps
// for each Site a ConfigMap of its pages, a Deployment that serves them, and a file in a
// directory that stands for something outside of the cluster.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "example.com/site-operator/v1"
	"example.com/site-operator/v1beta1"
)

var (
	published = flag.String("published", "", "`directory` with a file for each site")
	cert      = flag.String("cert", "", "`file` of the webhooks' certificate")
	key       = flag.String("key", "", "`file` of its key")
)

func main() {
	flag.Parse() // --kubeconfig is controller-runtime's
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "site-operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	// The lease lasts long, so that a slow machine does not lose it; it is given back at
	// the end.
	lease, renew, retry := 60*time.Second, 50*time.Second, 200*time.Millisecond
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		WebhookServer:                 ownPort{webhook.NewServer(webhook.Options{})},
		LeaderElection:                true,
		LeaderElectionID:              "site-operator",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return err
	}
	if err := addReconciler(mgr); err != nil {
		return err
	}
	if err := addWebhooks(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// ownPort is a webhook server on a port that was free; it prints its address.
type ownPort struct{ webhook.Server }

func (s ownPort) Start(ctx context.Context) error {
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: s.WebhookMux(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- srv.Shutdown(context.Background()) })
	fmt.Println(listener.Addr())
	if err := srv.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
		return err
	}
	return <-stopped
}
