package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Upstream's components end their process when something panics in one of their goroutines, and when they find that they
// cannot go on. Inside, only the component or the controller in which it happened ends, and is started again. That
// is so in goroutines that upstream lets recover (utilruntime.HandleCrash), as nearly all do.

// survivePanics has the process outlive panics of components. Programs without components are left as they are.
var survivePanics = sync.OnceFunc(func() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(slices.Clip(utilruntime.PanicHandlers), endAfterPanic)
	klog.OsExit = func(code int) { panic(fmt.Sprintf("exit with code %d", code)) }
})

// lives are what runs and ends by a panic; its context has its life.
var lives struct {
	sync.Mutex
	all map[*life]bool
}

type life struct{ end context.CancelCauseFunc }

type lifeKey struct{}

// endedByPanics returns a context that ends when something panics that has this context or one made of it. A panic that no
// context comes with ends all of them: whose it is cannot be told.
func endedByPanics(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	l := &life{end}
	lives.Lock()
	defer lives.Unlock()
	if lives.all == nil {
		lives.all = map[*life]bool{}
	}
	lives.all[l] = true
	return context.WithValue(ctx, lifeKey{}, l), func() {
		end(nil)
		lives.Lock()
		defer lives.Unlock()
		delete(lives.all, l)
	}
}

var errPanicked = errors.New("panic")

// endAfterPanic is one of utilruntime.PanicHandlers; another one has logged the reason with its stack.
func endAfterPanic(ctx context.Context, reason any) {
	err := fmt.Errorf("%w: %v", errPanicked, reason)
	if l, ok := ctx.Value(lifeKey{}).(*life); ok {
		l.end(err)
		return
	}
	lives.Lock()
	defer lives.Unlock()
	for l := range lives.all {
		l.end(err)
	}
}
