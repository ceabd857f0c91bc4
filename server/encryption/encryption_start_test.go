package encryption_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/encryption"
)

// startAll starts a server with all of its controllers and plugins, and returns its log.
func startAll(t *testing.T, dsn, dir string, rules ...rule) (*instance, *apitest.Lines) {
	t.Helper()
	log := &apitest.Lines{}
	return start(t, dsn, encryption.Options{ConfigFile: configFile(t, rules...)}, func(c *server.Config) {
		c.Controllers, c.DisableAdmissionPlugins, c.DataDir, c.Log = nil, nil, dir, log.Log()
	}), log
}

const sealedLine = "objects that every cluster needs cannot be decrypted"

// A server starts without the key of ConfigMaps, names the one that every cluster has, and makes it
// again when an admin has deleted it.
func TestStartsWithoutKeyOfConfigMaps(t *testing.T) {
	dsn, dir := "sqlite://"+t.TempDir()+"/a.db", t.TempDir()
	s, _ := startAll(t, dsn, dir, rule{"configmaps", []string{"aesgcm a"}})
	s.stop(t)
	s, log := startAll(t, dsn, dir, rule{"configmaps", []string{"aesgcm b"}})
	if log.Count(sealedLine) != 1 || log.Count("/registry/core/configmaps/kube-system/"+legacytokentracking.ConfigMapName) == 0 {
		t.Errorf("the log does not name the object: %s", log.All())
	}
	maps := s.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if _, err := maps.Get(t.Context(), legacytokentracking.ConfigMapName, metav1.GetOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("get: %v", err)
	}
	for _, path := range sealedPaths(t, s.client.RESTClient(), "/api/v1/configmaps") {
		unsafeDeleteRaw(t, s.client.RESTClient(), path)
	}
	apitest.Eventually(t, "the ConfigMap is made again", func() bool {
		m, err := maps.Get(t.Context(), legacytokentracking.ConfigMapName, metav1.GetOptions{})
		return err == nil && m.Data[legacytokentracking.ConfigMapDataKey] != ""
	})
	s.stop(t)
	if s, log = startAll(t, dsn, dir, rule{"configmaps", []string{"aesgcm b"}}); log.Count("cannot be decrypted") != 0 {
		t.Errorf("after the deletion: %s", log.All())
	}
	s.stop(t)
}

// A server starts without the key of anything, and an admin can delete what every cluster has.
func TestStartsWithoutAnyKey(t *testing.T) {
	dsn, dir := "sqlite://"+t.TempDir()+"/a.db", t.TempDir()
	s, _ := startAll(t, dsn, dir, rule{"*.*", []string{"aesgcm a"}})
	makeCars(t, s)
	s.stop(t)
	s, log := startAll(t, dsn, dir, rule{"*.*", []string{"aesgcm b"}})
	if log.Count(sealedLine) != 1 {
		t.Errorf("%d lines name what cannot be decrypted: %s", log.Count(sealedLine), log.All())
	}
	apitest.Eventually(t, "the log names what decides about requests", func() bool {
		return log.Count("objects that decide about requests cannot be decrypted") > 0 && log.Count("/clusterroles/cluster-admin ") > 0 && log.Count("/flowschemas/") > 0
	})
	for _, object := range []string{"namespaces/default", "namespaces/kube-system", "services/default/kubernetes", "servicecidrs/kubernetes", "priorityclasses/system-node-critical"} {
		if log.Count(object) == 0 {
			t.Errorf("the log does not name %s", object)
		}
	}
	_, err := s.client.CoreV1().Secrets("default").Create(t.Context(), secret("new", "1"), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "not yet ready to handle request") {
		t.Errorf("create in a namespace that cannot be read: %v", err)
	}
	for _, resource := range []string{
		"/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/services", "/api/v1/endpoints", "/api/v1/serviceaccounts",
		"/apis/networking.k8s.io/v1/ipaddresses", "/apis/networking.k8s.io/v1/servicecidrs", "/apis/scheduling.k8s.io/v1/priorityclasses",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		"/apis/rbac.authorization.k8s.io/v1/roles", "/apis/rbac.authorization.k8s.io/v1/rolebindings",
		"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
		"/apis/apiregistration.k8s.io/v1/apiservices", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apps/v1/deployments",
		"/apis/discovery.k8s.io/v1/endpointslices", "/apis/coordination.k8s.io/v1/leases", "/apis/apps/v1/replicasets", "/apis/events.k8s.io/v1/events",
	} {
		for _, path := range sealedPaths(t, s.client.RESTClient(), resource) {
			unsafeDeleteRaw(t, s.client.RESTClient(), path)
		}
	}
	s.stop(t)
	s, log = startAll(t, dsn, dir, rule{"*.*", []string{"aesgcm b"}})
	if log.Count(sealedLine)+log.Count("level=WARN") != 0 {
		t.Errorf("after the deletions: %s", log.All())
	}
	for name, get := range map[string]func() error{
		"namespace": func() error {
			_, err := s.client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
			return err
		},
		"service": func() error {
			_, err := s.client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
			return err
		},
		"role": func() error {
			_, err := s.client.RbacV1().ClusterRoles().Get(t.Context(), "cluster-admin", metav1.GetOptions{})
			return err
		},
	} {
		if err := get(); err != nil {
			t.Errorf("%s after the deletions: %v", name, err)
		}
	}
	s.stop(t)
}

// sealedPaths returns the paths of the objects of a resource that cannot be decrypted, as the error
// of a list names them.
func sealedPaths(t *testing.T, client clientrest.Interface, resource string) (paths []string) {
	t.Helper()
	err := client.Get().AbsPath(resource).Do(t.Context()).Error()
	if err == nil {
		return nil
	}
	status := statusOf(err)
	if status.Reason != metav1.StatusReasonStoreReadError {
		t.Fatalf("list of %s: %v", resource, err)
	}
	plural := resource[strings.LastIndex(resource, "/")+1:]
	for _, cause := range status.Details.Causes {
		_, object, _ := strings.Cut(strings.Replace(cause.Field, "/services/specs/", "/services/", 1), "/"+plural+"/")
		if namespace, name, namespaced := strings.Cut(object, "/"); namespaced {
			paths = append(paths, strings.TrimSuffix(resource, plural)+"namespaces/"+namespace+"/"+plural+"/"+name)
		} else if object != "" {
			paths = append(paths, resource+"/"+object)
		}
	}
	return paths
}

func unsafeDeleteRaw(t *testing.T, client clientrest.Interface, path string) {
	t.Helper()
	err := client.Delete().AbsPath(path).SetHeader("Content-Type", "application/json").
		Body([]byte(`{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`)).Do(t.Context()).Error()
	if err != nil {
		t.Errorf("delete %s: %v", path, err)
	}
}
