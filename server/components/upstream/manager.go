//go:build cluster

package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	managerconfig "k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/plinth-io/plinth/server/components"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/fielderr"
)

const managerName = "kube-controller-manager"

// manager is kube-controller-manager.
type manager struct{ components.Config }

// managerInstead are flags of kube-controller-manager that plinth has its own way for.
var managerInstead = components.Refused{
	"cluster-cidr": "cluster-cidr", "allocate-node-cidrs": "cluster-cidr", "service-cluster-ip-range": "service-cluster-ip-range",
	"use-service-account-credentials": "", "service-account-private-key-file": "", "root-ca-file": "",
	"controller-shutdown-timeout": "shutdown-timeout", "cloud-provider": "", "cloud-config": "", "cluster-name": "", "external-cloud-volume-plugin": "",
}

// configure makes the configuration. limited tells whether the rate of requests has a limit.
func (m manager) configure() (config *managerconfig.Config, limited bool, err error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, false, err
	}
	o.ComponentGlobalsRegistry = ownGlobals()
	all, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	args := components.NewArguments(o.Flags(all, off, aliases), managerInstead)
	m.setDefaults(o)
	err = args.Set(m.ManagerArgs)
	if err == nil {
		err = m.checkControllers(o.Generic.Controllers, aliases)
	}
	if err == nil {
		err = o.Validate(all, off, aliases)
	}
	if err != nil {
		return nil, false, fielderr.Errorf("%v: %w", fielderr.Name("ManagerArgs"), err)
	}
	config = &managerconfig.Config{}
	if err := o.ApplyTo(config, all, off, aliases); err != nil {
		return nil, false, err
	}
	config.ControllerShutdownTimeout = o.ControllerShutdownTimeout
	sizes := config.ComponentConfig.NodeIPAMController
	masks := components.Masks{Any: sizes.NodeCIDRMaskSize, IPv4: sizes.NodeCIDRMaskSizeIPv4, IPv6: sizes.NodeCIDRMaskSizeIPv6}
	if err := components.CheckRanges(m.ClusterCIDR, m.ServiceCIDR, masks); err != nil {
		return nil, false, fielderr.Errorf("%v: %w", fielderr.Name("ClusterCIDR"), err)
	}
	return config, args.Changed(limits...), nil
}

// setDefaults sets what is otherwise than upstream's default.
func (m manager) setDefaults(o *options.KubeControllerManagerOptions) {
	o.SecureServing.BindPort = 0
	o.Generic.LeaderElection.LeaderElect = false
	o.Generic.Controllers = []string{"*", names.BootstrapSignerController, names.TokenCleanerController}
	o.KubeCloudShared.AllocateNodeCIDRs = len(m.ClusterCIDR) > 0
	o.KubeCloudShared.ClusterCIDR = strings.Join(m.ClusterCIDR, ",")
	for i, into := range []*string{&o.NodeIPAMController.ServiceCIDR, &o.NodeIPAMController.SecondaryServiceCIDR} {
		if i < len(m.ServiceCIDR) {
			*into = m.ServiceCIDR[i]
		}
	}
	own := func(arg string) bool { return strings.HasPrefix(strings.TrimPrefix(arg, "--"), "cluster-signing-") }
	if !slices.ContainsFunc(m.ManagerArgs, own) {
		o.CSRSigningController.ClusterSigningCertFile, o.CSRSigningController.ClusterSigningKeyFile = m.Authority, m.AuthorityKey
	}
}

// checkControllers refuses to turn on or off what is not the manager's to run.
func (m manager) checkControllers(list []string, aliases map[string]string) error {
	for _, item := range list {
		name := strings.TrimPrefix(item, "-")
		if canonical := aliases[name]; canonical != "" {
			name = canonical
		}
		if slices.Contains(m.Without, name) {
			return fmt.Errorf("--controllers: plinth runs %s itself: write --controllers, a flag of plinth", name)
		}
	}
	return nil
}

// run runs the controllers until ctx ends.
func (m manager) run(ctx context.Context, host controllers.Host) error {
	config, limited, err := m.configure()
	if err != nil {
		return err
	}
	accounts := clients{host: host, component: managerName, connection: config.ComponentConfig.Generic.ClientConnection, limited: limited}
	manager := accounts
	manager.who = &user.DefaultInfo{Name: user.KubeControllerManager, Groups: []string{user.AllAuthenticated}}
	informerName, err := cache.NewInformerName(managerName)
	if err != nil {
		return err
	}
	defer informerName.Release()
	in, err := newContext(ctx, config, manager, accounts, informerName)
	if err != nil {
		return err
	}
	// What upstream's Run starts apart from the others is plinth's, the controller of service account tokens.
	descriptors := app.NewControllerDescriptors()
	for _, name := range append(m.Without, names.ServiceAccountTokenController) {
		delete(descriptors, name)
	}
	var health components.HealthChecks
	built, err := app.BuildControllers(ctx, in, descriptors, nil, &health)
	if err != nil {
		return err
	}
	in.InformerFactory.Start(ctx.Done())
	defer in.InformerFactory.Shutdown()
	in.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(in.InformersStarted)
	host.Works(health.Check)
	if !app.RunControllers(ctx, in, built, app.ControllerStartJitter, config.ControllerShutdownTimeout) {
		return errors.New("controllers did not end in time")
	}
	if ctx.Err() == nil {
		return errors.New("all controllers have ended")
	}
	return nil
}

// newContext is what upstream's controllers are made with.
func newContext(ctx context.Context, config *managerconfig.Config, manager, accounts clients, name *cache.InformerName) (in app.ControllerContext, err error) {
	client, err := manager.Client("shared-informers")
	if err != nil {
		return in, err
	}
	metadataConfig, err := manager.Config("metadata-informers")
	if err != nil {
		return in, err
	}
	metadataClient, err := metadata.NewForConfig(metadataConfig)
	if err != nil {
		return in, fmt.Errorf("client metadata-informers: %w", err)
	}
	discovery, err := manager.DiscoveryClient("controller-discovery")
	if err != nil {
		return in, err
	}
	resync := func() time.Duration {
		return time.Duration(float64(config.ComponentConfig.Generic.MinResyncPeriod.Duration) * (1 + rand.Float64()))
	}
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(withoutManagedFields), informers.WithInformerName(name))
	untyped := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(), metadatainformer.WithTransform(withoutManagedFields))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(discovery))
	go wait.Until(mapper.Reset, 30*time.Second, ctx.Done())
	controllersmetrics.Register()
	return app.ControllerContext{
		ClientBuilder:                   accounts,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, untyped),
		ComponentConfig:                 config.ComponentConfig,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics(managerName),
	}, nil
}
