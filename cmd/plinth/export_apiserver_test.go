package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestExportToKubeAPIServer has a kube-apiserver go on with what plinth has served and exported. It
// runs with TestKubeAPIServer.
func TestExportToKubeAPIServer(t *testing.T) {
	if os.Getenv(apiserverVariable) == "" {
		t.Skipf("%s is not set; make test-etcd sets it", apiserverVariable)
	}
	program, _ := buildAPIServer(t, "cluster", t.TempDir())
	eachWanted(t, apiserverVariable, func(t *testing.T, d logtest.Dialect) {
		_, encryption := recordedFiles(t)
		dsn, before := servedFrom(t, d, encryption)
		t.Run("file", func(t *testing.T) {
			data := restored(t, "--dsn="+dsn, "--encryption-provider-config="+encryption)
			testExported(t, program, encryption, etcdtest.StartAt(t, "--data-dir="+data), before, true)
		})
		t.Run("live", func(t *testing.T) {
			address := etcdtest.StartAt(t)
			code, out := runPlinth(t, "export", "--dsn="+dsn, "--encryption-provider-config="+encryption, "--etcd=http://"+address)
			if code != 0 {
				t.Fatalf("export: exit code %d: %s", code, out)
			}
			testExported(t, program, encryption, address, before, false)
		})
	})
}

// exportedObjects are of many resources, built-in and not, with all that a kube-apiserver encrypts,
// converts or defaults.
const exportedObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop, annotations: {z: "<a>&é"}}
data: {n: "1"}
binaryData: {b: AAEC}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {p: q}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, nodePort: 30080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m, memory: 64Mi}}, livenessProbe: {httpGet: {port: 80}}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 60}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: shop}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Event
metadata: {name: made, namespace: shop}
involvedObject: {kind: ConfigMap, name: settings, namespace: shop}
reason: Made
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec: {matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}, validations: [{expression: object.spec.replicas <= 50}]}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cars.acme.io}
spec:
  group: acme.io
  scope: Namespaced
  names: {plural: cars, singular: car, kind: Car}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// servedFrom has plinth serve objects from a fresh database, and returns them after it has ended.
func servedFrom(t *testing.T, d logtest.Dialect, encryption string) (dsn string, objects map[string]map[string]any) {
	t.Helper()
	dsn = d.Fresh(t)
	p := startPlinth(t, nil, "serve", "--listen=127.0.0.1:0", "--dsn="+dsn, "--encryption-provider-config="+encryption, "--service-cluster-ip-range=10.0.0.0/24")
	manifest := filepath.Join(t.TempDir(), "objects.yaml")
	must(t, os.WriteFile(manifest, []byte(exportedObjects), 0o600))
	kubectlOf(t, p.kubeconfig, "apply -f "+manifest)
	kubectlOf(t, p.kubeconfig, "wait crd/cars.acme.io --for=condition=Established --timeout=60s")
	must(t, os.WriteFile(manifest, []byte("apiVersion: acme.io/v1\nkind: Car\nmetadata: {name: beetle, namespace: shop}\nspec: {weight: 1500, b: [1, 2.5, null]}\n"), 0o600))
	soon(t, "cars are served", func() bool {
		return strings.Contains(kubectlOf(t, p.kubeconfig, "apply -f "+manifest), "beetle")
	})
	kubectlOf(t, p.kubeconfig, "patch deployment web -n shop --subresource=status --type=merge --patch={\"status\":{\"replicas\":2}}")
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	must(t, err)
	soon(t, "plinth has made what it makes", func() bool {
		before := allObjects(t, config)
		objects = allObjects(t, config)
		return cmp.Equal(withoutLeases(before), withoutLeases(objects)) && strings.Contains(kubectlOf(t, p.kubeconfig, "get --raw /readyz"), "ok")
	})
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	must(t, p.cmd.Wait())
	return dsn, objects
}

// withoutLeases leaves out what servers renew all the time.
func withoutLeases(all map[string]map[string]any) map[string]map[string]any {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ map[string]any) bool { return strings.Contains(name, " leases ") })
	return out
}

// allObjects returns the objects of all resources in all versions, by version, resource and name, without
// the history of all of them.
func allObjects(t *testing.T, config *clientrest.Config) map[string]map[string]any {
	t.Helper()
	config = clientrest.CopyConfig(config)
	config.QPS = -1
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
	must(t, err)
	client, all := dynamic.NewForConfigOrDie(config), map[string]map[string]any{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "componentstatuses" || gv.Group == historyv1.GroupName {
				continue
			}
			items, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for _, item := range items.Items {
				all[gv.String()+" "+r.Name+" "+item.GetNamespace()+"/"+item.GetName()] = item.Object
			}
		}
	}
	return all
}

// restored exports to a file and returns the data directory that etcdutl makes of it.
func restored(t *testing.T, args ...string) (data string) {
	t.Helper()
	dir := t.TempDir()
	file, data := filepath.Join(dir, "export.db"), filepath.Join(dir, "data")
	code, out := runPlinth(t, append([]string{"export", "--etcd=" + file}, args...)...)
	if code != 0 {
		t.Fatalf("export: exit code %d: %s", code, out)
	}
	printed, err := exec.Command(etcdtest.Program(t, "etcdutl"), "snapshot", "restore", file, "--data-dir="+data).CombinedOutput()
	if err != nil {
		t.Fatalf("etcdutl: %v: %s", err, printed)
	}
	return data
}

// testExported starts a kube-apiserver on the etcd: it serves what plinth has served, and goes on.
func testExported(t *testing.T, program, encryption, etcd string, before map[string]map[string]any, revisions bool) {
	t.Helper()
	s := startAPIServer(t, program, "--etcd-servers=http://"+etcd, "--encryption-provider-config="+encryption)
	after := allObjects(t, s.config)
	same, missing := 0, 0
	for name, was := range before {
		is, there := after[name]
		switch {
		case serversOwn(name):
		case !there:
			missing++
			t.Errorf("%s is not there", name)
		case !sameObject(t, name, was, is, revisions):
		default:
			same++
		}
	}
	if same < 200 || missing > 0 {
		t.Errorf("%d objects are the same, %d are missing", same, missing)
	}
	t.Logf("%d of %d objects are the same", same, len(before))
	testGoesOn(t, s, before)
	testTour(t, s)
	testCustomResources(t, s)
	s.noComplaints(t, storageComplaint)
}

// serversOwn tells whether an object is one that a server makes for itself, or changes at its start.
func serversOwn(name string) bool {
	for _, part := range []string{
		"history.plinth.io", " clusterroles /plinth:", " clusterrolebindings /plinth:", " leases kube-system/apiserver-", " leases kube-system/plinth-controllers", " endpoints default/kubernetes", " endpointslices default/kubernetes",
		" configmaps kube-system/extension-apiserver-authentication", // to which a server adds its authorities
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// sameObject compares what plinth and kube-apiserver have served. With revisions, objects that nobody
// has changed since have the resourceVersion that they had.
func sameObject(t *testing.T, name string, was, is map[string]any, revisions bool) bool {
	t.Helper()
	before, after := (&unstructured.Unstructured{Object: was}).DeepCopy(), (&unstructured.Unstructured{Object: is}).DeepCopy()
	if revisions && before.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("%s was of revision %s, is of %s", name, before.GetResourceVersion(), after.GetResourceVersion())
	}
	before.SetResourceVersion("")
	after.SetResourceVersion("")
	diff := cmp.Diff(before.Object, after.Object)
	if diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
	return diff == ""
}

// testGoesOn changes what was exported.
func testGoesOn(t *testing.T, s *stockAPIServer, before map[string]map[string]any) {
	t.Helper()
	s.kubectl(t, "patch", "car", "beetle", "-n", "shop", "--type=merge", `--patch={"spec":{"weight":1600}}`)
	s.kubectl(t, "scale", "deployment", "web", "-n", "shop", "--replicas=3")
	s.kubectl(t, "delete", "secret", "password", "-n", "shop")
	if got := s.kubectl(t, "get", "car", "beetle", "-n", "shop", "-o", "jsonpath={.spec.weight}"); got != "1600" {
		t.Errorf("the car weighs %s", got)
	}
	// Addresses and ports of Services are known to be taken.
	address, _, _ := unstructured.NestedString(before["v1 services shop/web"], "spec", "clusterIP")
	out, err := s.command(t, "create", "service", "clusterip", "second", "-n", "shop", "--tcp=80", "--clusterip="+address).CombinedOutput()
	if err == nil || address == "" {
		t.Errorf("the address %s is given away twice: %s", address, out)
	}
	out, err = s.command(t, "create", "service", "nodeport", "third", "-n", "shop", "--tcp=80", "--node-port=30080").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "already allocated") {
		t.Errorf("a port is given away twice: %s", out)
	}
	s.kubectl(t, "create", "service", "clusterip", "fourth", "-n", "shop", "--tcp=80")
	if before["v1 events shop/made"] == nil {
		t.Error("plinth has served no Event")
	}
}
