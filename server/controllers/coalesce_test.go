package controllers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// A handler that reads all roles after any change is called once for all roles that are there at
// the start. When many roles change, the handler is called at most once in coalesceFor.
func TestCoalesce(t *testing.T) {
	const n = 300
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	put := func(i int) (*sqlstore.Entry, error) {
		name := fmt.Sprint("role-", i)
		return storetest.Put(t.Context(), store, "/registry/rbac.authorization.k8s.io/clusterroles/"+name,
			`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"`+name+`"}}`)
	}
	storetest.PutMany(t, n, put)
	kinds := kind.NewRegistry(nil)
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	s := &informerSet{ctx: ctx, store: store, kinds: kinds, lost: func(err error) { t.Error(err) }, byPrefix: map[string]*informer{}}
	defer s.close()
	defer cancel()
	s.coalesce(&rbacv1.ClusterRole{})
	roles := s.InformerFor(&rbacv1.ClusterRole{}, nil)
	var calls, seen atomic.Int64
	count := func() { calls.Add(1); seen.Store(int64(len(roles.GetStore().List()))) }
	_, err := roles.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { count() }, UpdateFunc: func(any, any) { count() }, DeleteFunc: func(any) { count() },
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s.Start(nil)
	awaitSeen(t, &seen, n)
	if !roles.HasSynced() || calls.Load() != 1 {
		t.Errorf("%d calls for %d roles at the start; synced: %v", calls.Load(), n, roles.HasSynced())
	}
	storetest.PutMany(t, n, func(i int) (*sqlstore.Entry, error) { return put(n + i) })
	awaitSeen(t, &seen, 2*n)
	if most := int64(time.Since(begun)/coalesceFor) + 2; calls.Load() > most {
		t.Errorf("%d calls in %v, more than %d", calls.Load(), time.Since(begun), most)
	}
}

func awaitSeen(t *testing.T, seen *atomic.Int64, n int64) {
	t.Helper()
	for begun := time.Now(); seen.Load() != n; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("%d roles are seen, not %d", seen.Load(), n)
		}
	}
}
