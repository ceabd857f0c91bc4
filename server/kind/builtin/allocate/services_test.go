package allocate_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientrest "k8s.io/client-go/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

func openServices(t testing.TB) (*sqlstore.Store, *kind.Kind) {
	log, err := dialects.Open(context.Background(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := object.Open(context.Background(), log, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	cidr := `{"kind":"ServiceCIDR","apiVersion":"networking.k8s.io/v1","metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.96.0.0/12"]}}`
	_, err = store.Commit(context.Background(), sqlstore.Change{Key: "/registry/networking.k8s.io/servicecidrs/kubernetes", Value: []byte(cidr)})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range builtin.Kinds(builtin.Options{Store: store, Client: &clientrest.Config{}}) {
		if k.Group == "" && k.Resource == "services" {
			return store, k
		}
	}
	t.Fatal("no Services")
	return nil, nil
}

func newService(name string) *api.Service {
	return &api.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.ServiceSpec{Type: api.ServiceTypeNodePort, Ports: []api.ServicePort{{Port: 80, Protocol: api.ProtocolTCP}}},
	}
}

// TestStoreAway: if the store cannot be written, the client gets that error, and not that all
// addresses are taken.
func TestStoreAway(t *testing.T) {
	store, k := openServices(t)
	ctx := apirequest.WithNamespace(t.Context(), "default")
	finish, err := k.Hooks.ReserveNew(ctx, newService("a"), &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	finish(ctx, true)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Hooks.ReserveNew(ctx, newService("b"), &metav1.CreateOptions{}); !errors.Is(err, changelog.ErrClosed) {
		t.Errorf("got %v, want %v", err, changelog.ErrClosed)
	}
}

// TestGiveBack: only what belongs to the Service is given back.
func TestGiveBack(t *testing.T) {
	store, k := openServices(t)
	ctx := apirequest.WithNamespace(t.Context(), "default")
	svc := newService("a")
	finish, err := k.Hooks.ReserveNew(ctx, svc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	finish(ctx, true)
	address := "/registry/networking.k8s.io/ipaddresses/" + svc.Spec.ClusterIP
	other := svc.DeepCopy()
	other.Name = "b"
	k.Hooks.Release(other, &metav1.DeleteOptions{})
	k.Hooks.Release(svc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if store.Get(address) == nil {
		t.Error("another Service gave the address back")
	}
	k.Hooks.Release(svc, &metav1.DeleteOptions{})
	if store.Get(address) != nil {
		t.Error("the address is still taken")
	}
}

// TestGiveBackOnce refuses a Service, which gives its address back, while another Service of the
// same name takes that address. The other Service must keep it.
func TestGiveBackOnce(t *testing.T) {
	store, k := openServices(t)
	ctx := apirequest.WithNamespace(t.Context(), "default")
	const ip, port = "10.96.9.77", 30777
	holder := newService("holder")
	holder.Spec.Ports[0].NodePort = port
	if _, err := k.Hooks.ReserveNew(ctx, holder, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := newService("a")
	refused.Spec.ClusterIP, refused.Spec.Ports[0].NodePort = ip, port
	var refusing sync.WaitGroup
	defer refusing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	refusing.Go(func() {
		for ctx.Err() == nil {
			if _, err := k.Hooks.ReserveNew(ctx, refused.DeepCopy(), &metav1.CreateOptions{}); err == nil {
				t.Error("a port was taken twice")
			}
		}
	})
	kept := 0
	for kept < 2000 {
		svc := newService("a")
		svc.Spec.ClusterIP = ip
		finish, err := k.Hooks.ReserveNew(ctx, svc, &metav1.CreateOptions{})
		if err != nil {
			continue
		}
		finish(ctx, true)
		kept++
		runtime.Gosched()
		if store.Get("/registry/networking.k8s.io/ipaddresses/"+ip) == nil {
			t.Fatalf("the address of the Service is free, the %dth time", kept)
		}
		k.Hooks.Release(svc, &metav1.DeleteOptions{})
	}
}

// BenchmarkAllocate measures taking and giving back for a Service, without its own two writes.
func BenchmarkAllocate(b *testing.B) {
	_, k := openServices(b)
	ctx := apirequest.WithNamespace(b.Context(), "default")
	for b.Loop() {
		svc := newService("a")
		finish, err := k.Hooks.ReserveNew(ctx, svc, &metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		finish(ctx, false)
	}
}
