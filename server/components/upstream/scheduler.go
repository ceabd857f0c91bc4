//go:build cluster

package upstream

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"github.com/plinth-io/plinth/server/components"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/fielderr"
)

const schedulerName = "kube-scheduler"

// kubeScheduler is kube-scheduler.
type kubeScheduler struct{ components.Config }

// schedulerInstead are flags of kube-scheduler that plinth has its own way for.
var schedulerInstead = components.Refused{"config": "kube-scheduler-config", "write-config-to": ""}

// configure makes the options, whose ComponentConfig is complete. limited tells whether the rate of requests has a limit.
func (s kubeScheduler) configure() (o *options.Options, limited bool, err error) {
	o = options.NewOptionsWithComponentGlobalsRegistry(ownGlobals())
	args := components.NewArguments(*o.Flags, schedulerInstead)
	if err := args.Set(s.SchedulerArgs); err != nil {
		return nil, false, fielderr.Errorf("%v: %w", fielderr.Name("SchedulerArgs"), err)
	}
	if s.SchedulerConfig == "" {
		o.ComponentConfig, err = latest.Default()
	} else {
		o.ComponentConfig, err = options.LoadConfigFromFile(klog.Background(), s.SchedulerConfig)
	}
	if err != nil {
		return nil, false, fielderr.Errorf("%v: %w", fielderr.Name("SchedulerConfig"), err)
	}
	o.ApplyDeprecated()
	if err := validation.ValidateKubeSchedulerConfiguration(o.ComponentConfig); err != nil {
		return nil, false, fielderr.Errorf("%v: %w", fielderr.Name("SchedulerConfig"), err)
	}
	return o, args.Changed(limits...), nil
}

// run runs the scheduler until ctx ends.
func (s kubeScheduler) run(ctx context.Context, host controllers.Host) error {
	o, limited, err := s.configure()
	if err != nil {
		return err
	}
	own := clients{
		host: host, component: schedulerName, connection: o.ComponentConfig.ClientConnection, limited: limited,
		who: &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}},
	}
	client, err := own.Client("scheduler")
	if err != nil {
		return err
	}
	config, err := own.Config("scheduler")
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of custom resources: %w", err)
	}
	informerName, err := cache.NewInformerName(schedulerName)
	if err != nil {
		return err
	}
	defer informerName.Release()
	typedInformers := scheduler.NewInformerFactory(client, 0, informerName)
	untypedInformers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, corev1.NamespaceAll, nil)
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	broadcaster.StartRecordingToSink(ctx.Done())
	defer broadcaster.Shutdown()
	made, err := scheduler.New(ctx, client, typedInformers, untypedInformers,
		func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) },
		append(schedulerOptions(o.ComponentConfig), scheduler.WithKubeConfig(config),
			scheduler.WithPodMaxInUnschedulablePodsDuration(o.Deprecated.PodMaxInUnschedulablePodsDuration))...)
	if err != nil {
		return err
	}
	typedInformers.Start(ctx.Done())
	defer typedInformers.Shutdown()
	untypedInformers.Start(ctx.Done())
	defer untypedInformers.Shutdown()
	typedInformers.WaitForCacheSync(ctx.Done())
	untypedInformers.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	host.Works(func() error { return nil })
	made.Run(ctx)
	if ctx.Err() == nil {
		return errors.New("the scheduler has ended")
	}
	return nil
}

// schedulerOptions are those of a configuration.
func schedulerOptions(c *schedulerconfig.KubeSchedulerConfiguration) []scheduler.Option {
	return []scheduler.Option{
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(c.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(c.PodInitialBackoffSeconds),
		scheduler.WithExtenders(c.Extenders...),
		scheduler.WithParallelism(c.Parallelism),
	}
}
