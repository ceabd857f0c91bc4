package fairness

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	fcmetrics "k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	flowcontrolclient "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of a Controller. All are needed.
type Options struct {
	Seats   int                // of the server: so many requests of width one may run at once
	Timeout time.Duration      // of a request that is not long-running
	Store   *sqlstore.Store    // has the FlowSchemas and PriorityLevelConfigurations
	Kinds   *kind.Registry     // tells which objects a list is of
	Client  *clientrest.Config // writes the default objects and the conditions of FlowSchemas
	Logger  *slog.Logger
}

// Controller lets requests in. Its methods are safe for concurrent use.
type Controller struct {
	o         Options
	client    flowcontrolclient.FlowcontrolV1Interface
	informers *informers
	upstream  flowcontrol.Interface
	width     fcrequest.WorkEstimatorFunc
	sizes     sizes
	dropped   flowcontrol.DroppedRequestsTracker
	memory    memory
	metrics   *metrics
	defaults  defaults
}

// New returns a Controller that knows no objects yet: until Run has read them, it does as upstream
// does with the mandatory ones alone.
func New(o Options) (*Controller, error) {
	client, err := flowcontrolclient.NewForConfig(o.Client)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	fcmetrics.Register() // upstream's levels take hold of their metrics when they are made
	c := &Controller{o: o, client: client, informers: newInformers(o.Store), metrics: newMetrics(), dropped: flowcontrol.NewDroppedRequestsTracker()}
	c.defaults = newDefaults(client, c.informers)
	clock := eventclock.Real{}
	c.upstream = flowcontrol.NewTestable(flowcontrol.TestableConfig{
		Name: "Controller", Clock: clock,
		AsFieldManager:         flowcontrol.ConfigConsumerAsFieldManager,
		FoundToDangling:        func(found bool) bool { return !found },
		InformerFactory:        c.informers,
		FlowcontrolClient:      client,
		ServerConcurrencyLimit: o.Seats,
		ReqsGaugeVec:           fcmetrics.PriorityLevelConcurrencyGaugeVec,
		ExecSeatsGaugeVec:      fcmetrics.PriorityLevelExecutionSeatsGaugeVec,
		QueueSetFactory:        newLevels(clock, &c.memory),
	})
	c.width = fcrequest.NewWorkEstimator(c.stats, c.upstream.GetInterestedWatchCount, fcrequest.DefaultWorkEstimatorConfig(), c.upstream.GetMaxSeats)
	return c, nil
}

// Run follows the objects until ctx ends. When Run returns, it follows none any more.
func (c *Controller) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { c.informers.run(ctx) })
	all.Go(func() { c.keep(ctx) })
	if err := c.upstream.Run(ctx.Done()); err != nil && ctx.Err() == nil {
		c.o.Logger.Error("priority and fairness does not follow its objects", "err", err)
	}
}
