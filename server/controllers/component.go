package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Component is a program of a control plane that runs inside, on the same server as the controllers, such as
// kube-scheduler.
type Component struct {
	Name string
	// Run runs the component until ctx ends. If it returns before or panics, that is logged, and it is called again after
	// a pause. When it returns, all that it has started has ended.
	Run func(ctx context.Context, host Host) error
}

// Host is what a component is given by the server that it runs in.
type Host struct {
	// As returns a client of the API for a user. Its writes fail while the components are another server's.
	As func(who user.Info) *clientrest.Config
	// Logger gets what an operator should know.
	Logger *slog.Logger
	// Works is called when the component has begun to work. From then on health is asked how it is; its error is public.
	Works func(health func() error)
}

// The pauses before a component that has ended is started again. They double, until it has run for longer than the longest.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// component is a Component of this server, and how it is.
type component struct {
	Component

	mu     sync.Mutex
	down   bool         // it has ended by itself, and does not work again yet
	health func() error // nil: it does not work
}

var errComponentDown = errors.New("has ended and starts again; the log says why")

// Components are the names of the components that the manager runs.
func (m *Manager) Components() (names []string) {
	for _, c := range m.components {
		names = append(names, c.Name)
	}
	return names
}

// Health is an error while a component of this server does not work that should. Of components that another server runs, or
// that are about to start, it is nil.
func (m *Manager) Health(name string) error {
	for _, c := range m.components {
		if c.Name == name {
			return c.check()
		}
	}
	return nil
}

func (c *component) check() error {
	c.mu.Lock()
	down, health := c.down, c.health
	c.mu.Unlock()
	switch {
	case down:
		return errComponentDown
	case health != nil:
		return health()
	}
	return nil
}

func (c *component) set(down bool, health func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.health = down, health
}

// keepComponent runs a component again and again until ctx ends.
func (m *Manager) keepComponent(ctx context.Context, c *component) {
	defer c.set(false, nil)
	host := Host{
		As:     func(who user.Info) *clientrest.Config { return m.fence.client(m.clientAs(who)) },
		Logger: m.config.Logger.With("component", c.Name),
		Works:  func(health func() error) { c.set(false, health) },
	}
	ctx = klog.NewContext(ctx, logging.Retrying(m.config.Logger, c.Name))
	for pause := firstPause; ; {
		begun := time.Now()
		err := c.runOnce(ctx, host)
		if ctx.Err() != nil {
			return
		}
		c.set(true, nil)
		if time.Since(begun) > mostPause {
			pause = firstPause
		}
		host.Logger.Error("a component ended and starts again", "after", pause, "err", err)
		if sleep.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, mostPause)
	}
}

// runOnce returns why the component has ended.
func (c *component) runOnce(ctx context.Context, host Host) (err error) {
	ctx, end := endedByPanics(ctx)
	defer end()
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	err = c.Run(ctx, host)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
