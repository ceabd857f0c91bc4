package controllers

import (
	"testing"

	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/client-go/informers/storagemigration"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// An informer has objects of the version that it is asked for, in whatever version they are stored: that of the release
// before, today's, or that which an older release chose.
func TestInformerConverts(t *testing.T) {
	c := apitest.Open(t)
	for _, version := range []string{"v1", "v1beta1"} {
		_, err := storetest.Put(t.Context(), c.Store, migrationsPrefix+version,
			`{"kind":"StorageVersionMigration","apiVersion":"storagemigration.k8s.io/`+version+`","metadata":{"name":"`+version+`","uid":"u"},"spec":{"resource":{"group":"","resource":"pods"}},"status":{}}`)
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &informerSet{ctx: t.Context(), store: c.Store, kinds: c.Kinds, byPrefix: map[string]*informer{}}
	migrations := storagemigration.New(s, "", nil).V1().StorageVersionMigrations()
	for _, name := range []string{"v1", "v1beta1"} {
		svm, err := migrations.Lister().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if svm.APIVersion != svmv1.SchemeGroupVersion.String() || svm.Spec.Resource.Resource != "pods" || svm.ResourceVersion == "" {
			t.Errorf("stored in %s: %+v", name, svm)
		}
	}
}
