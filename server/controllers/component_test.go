package controllers_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

// A component that ends by itself, in any way, is started again. Until it works, its check fails; other components go on.
func TestComponentStartsAgain(t *testing.T) {
	for name, fault := range map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errors.New("the fault") },
		"panic": func(context.Context) error { panic("the fault") },
		"panic of a goroutine": func(ctx context.Context) error {
			go func() {
				defer utilruntime.HandleCrashWithContext(ctx)
				panic("the fault")
			}()
			<-ctx.Done()
			return nil
		},
		"exit": func(ctx context.Context) error {
			go func() {
				defer utilruntime.HandleCrashWithContext(ctx)
				klog.OsExit(1)
			}()
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := openFixture(t)
			bootstrap(t, c, here)
			var runs, others atomic.Int32
			goOn, log := make(chan struct{}), &apitest.Lines{}
			m, _ := runManager(t, c, controllers.Config{Controllers: []string{}, Logger: log.Log(), Components: []controllers.Component{
				{Name: "faulty", Run: func(ctx context.Context, host controllers.Host) error {
					if runs.Add(1) == 1 {
						host.Works(func() error { return nil })
						return fault(ctx)
					}
					select {
					case <-goOn:
					case <-ctx.Done():
						return nil
					}
					host.Works(func() error { return errors.New("unwell") })
					<-ctx.Done()
					return nil
				}},
				{Name: "other", Run: func(ctx context.Context, host controllers.Host) error {
					others.Add(1)
					host.Works(func() error { return nil })
					<-ctx.Done()
					return nil
				}},
			}})
			apitest.Eventually(t, "it is started again", func() bool { return runs.Load() == 2 })
			if err := m.Health("faulty"); err == nil || !strings.Contains(err.Error(), "has ended and starts again") {
				t.Errorf("it is %v", err)
			}
			close(goOn)
			apitest.Eventually(t, "it works", func() bool { return m.Health("faulty") != nil && m.Health("faulty").Error() == "unwell" })
			if err := m.Health("other"); err != nil || others.Load() != 1 {
				t.Errorf("the other one was started %d times, and is %v", others.Load(), err)
			}
			if n := log.Count(`msg="a component ended and starts again" component=faulty`); n != 1 || name != "exit" && log.Count("the fault") == 0 {
				t.Errorf("logged %d times:\n%s", n, log.All())
			}
		})
	}
}

// Of two servers one runs the components. What a component writes is refused when the server has lost the lease, and when
// the server ends, the other one runs them.
func TestComponentsElected(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	running, written := make(chan string, 2), make(chan string, 2)
	config := func(identity string) controllers.Config {
		return controllers.Config{Controllers: []string{}, Identity: identity, Components: []controllers.Component{
			{Name: "one", Run: func(ctx context.Context, host controllers.Host) error {
				running <- identity
				client := kubernetes.NewForConfigOrDie(host.As(&user.DefaultInfo{Name: user.KubeScheduler}))
				if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: identity}}, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				written <- identity // the object is there before its writer has the answer
				<-ctx.Done()
				return nil
			}},
		}}
	}
	wantWritten := func(identity string) {
		t.Helper()
		if who := <-written; who != identity || c.get(t, "default", identity) == nil {
			t.Errorf("%s has written, not %s", who, identity)
		}
	}
	stop := run(t, c, config("first"))
	if who := <-running; who != "first" {
		t.Fatalf("%s runs them", who)
	}
	run(t, c, config("second"))
	wantWritten("first")
	select {
	case who := <-running:
		t.Errorf("%s runs them, too", who)
	default:
	}
	stop()
	if who := <-running; who != "second" {
		t.Fatalf("%s runs them", who)
	}
	wantWritten("second")
}

// kube-controller-manager leaves alone what the server runs itself or has turned off, but not what is off by default.
func TestOwnOf(t *testing.T) {
	const namespaces, pods = "namespace-controller", "pod-garbage-collector-controller"
	for _, tt := range []struct {
		list             []string
		namespaces, pods bool
	}{
		{nil, true, false},
		{[]string{"*", "-namespace"}, true, false},
		{[]string{"none"}, true, false},
		{[]string{"*", "podgc"}, true, true},
	} {
		own := " " + strings.Join(controllers.OwnOf(tt.list), " ") + " "
		if strings.Contains(own, " "+namespaces+" ") != tt.namespaces || strings.Contains(own, " "+pods+" ") != tt.pods {
			t.Errorf("%q: %s", tt.list, own)
		}
	}
}
