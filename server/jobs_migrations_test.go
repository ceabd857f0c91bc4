package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	svmv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	migrationsPath = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	scalersPath    = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/"
	scalerKeys     = "/registry/autoscaling/horizontalpodautoscalers/default/"
)

// oldScaler is how a release that stores autoscaling/v1 stores a HorizontalPodAutoscaler.
func oldScaler(name string) sqlstore.Change {
	return sqlstore.Change{Key: scalerKeys + name, Value: []byte(`{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"` + name + `","namespace":"default","uid":"u-` + name + `","creationTimestamp":"2026-01-01T00:00:00Z"},` +
		`"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},"maxReplicas":3,"targetCPUUtilizationPercentage":70},"status":{"currentReplicas":0,"desiredReplicas":0}}`)}
}

// A StorageVersionMigration rewrites what is stored in another version than today's and nothing else, says so as
// upstream's controller does, and has the definition of a custom resource forget the old version. Afterwards the
// controller is at rest.
func TestStorageVersionMigration(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		s, _ := startBoth(t, d, Config{Controllers: []string{"svm"}})
		c := clientOf(t, s)
		w := &writes{t: t, s: s, client: c}
		w.objects([]string{
			"POST " + strings.TrimSuffix(scalersPath, "/") + ` {"metadata":{"name":"new"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},"maxReplicas":3}}`,
			"POST " + definitionsPath + " " + widgets("a.example.org", "v1"),
			"POST /apis/a.example.org/v1/namespaces/default/widgets " + widget("a", ""),
			"PATCH " + definitionsPath + "/widgets.a.example.org " + `{"spec":{"versions":` + versions("v2", "v1") + `}}`,
			"PATCH " + definitionsPath + "/widgets.a.example.org " + `{"metadata":{"labels":{"a":"b"}}}`,
		})
		for _, name := range []string{"old", "older"} {
			_, err := s.store.Commit(t.Context(), oldScaler(name))
			must(t, err)
		}
		before := c.do("GET", scalersPath+"old", "", http.StatusOK)
		revision := s.store.Get(scalerKeys + "new").Revision

		c.migrate("scalers", "autoscaling", "horizontalpodautoscalers", "Migration completed", "StorageVersionMigrationSucceeded")
		for _, name := range []string{"old", "older"} {
			if e := s.store.Get(scalerKeys + name); !strings.Contains(string(e.Value), `"apiVersion":"autoscaling/v2"`) {
				t.Errorf("stored as %s", e.Value)
			}
		}
		if diff := cmp.Diff(withoutRevision(t, before), withoutRevision(t, c.do("GET", scalersPath+"old", "", http.StatusOK))); diff != "" {
			t.Error("the migration changes more than the version: ", diff)
		}
		if now := s.store.Get(scalerKeys + "new").Revision; now != revision {
			t.Errorf("an object in today's version was written at %d, before at %d", now, revision)
		}
		c.migrate("widgets", "a.example.org", "widgets", "Migration completed", "StorageVersionMigrationSucceeded")
		if e := s.store.Get("/registry/a.example.org/widgets/default/w"); !strings.Contains(string(e.Value), `"apiVersion":"a.example.org/v2"`) {
			t.Errorf("stored as %s", e.Value)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, json.Unmarshal([]byte(c.do("GET", definitionsPath+"/widgets.a.example.org", "", http.StatusOK)), &crd))
		if diff := cmp.Diff([]string{"v2"}, crd.Status.StoredVersions); diff != "" {
			t.Error("storedVersions: ", diff)
		}
		i := slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.StorageMigrating
		})
		if i < 0 || crd.Status.Conditions[i].Message != "The migration has succeeded and the stored versions have been updated" {
			t.Errorf("conditions of the definition: %+v", crd.Status.Conditions)
		}
		c.migrate("nothing", "", "bindings", `resource "/v1, Resource=bindings" does not support discovery operations: [update patch list]`, "StorageVersionMigrationFailed")
		if found := w.during(restFor); len(found) > 0 {
			t.Errorf("written at rest: %v", slices.Sorted(maps.Keys(found)))
		}
	})
}

// migrate makes a migration, and waits until it has ended in the way that its last condition says.
func (c client) migrate(name, group, resource, message, reason string) {
	c.t.Helper()
	c.do("POST", migrationsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resource":{"group":%q,"resource":%q}}}`, name, group, resource), http.StatusCreated)
	var svm svmv1.StorageVersionMigration
	said := map[svmv1.MigrationConditionType]string{}
	apitest.Eventually(c.t, name+" runs no more", func() bool {
		svm = svmv1.StorageVersionMigration{}
		must(c.t, json.Unmarshal([]byte(c.do("GET", migrationsPath+"/"+name, "", http.StatusOK)), &svm))
		for _, cond := range svm.Status.Conditions {
			said[svmv1.MigrationConditionType(cond.Type)] = string(cond.Status) + " " + cond.Reason + " " + cond.Message
		}
		return strings.HasPrefix(said[svmv1.MigrationRunning], "False ")
	})
	want := map[svmv1.MigrationConditionType]string{svmv1.MigrationRunning: "False MigrationCompleted Migration completed"}
	ended := svmv1.MigrationSucceeded
	if reason == "StorageVersionMigrationFailed" {
		ended = svmv1.MigrationFailed
	} else if _, err := strconv.Atoi(svm.Status.ResourceVersion); err != nil {
		c.t.Errorf("resourceVersion %q", svm.Status.ResourceVersion)
	}
	want[ended] = "True " + reason + " " + message
	if diff := cmp.Diff(want, said); diff != "" {
		c.t.Errorf("conditions of %s: %s", name, diff)
	}
}

// withoutRevision decodes an object, without its resourceVersion.
func withoutRevision(t *testing.T, body string) (object map[string]any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(body), &object))
	delete(object["metadata"].(map[string]any), "resourceVersion")
	return object
}
