package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// TestImportAPIServer has a kube-apiserver write objects, and imports them from its etcd as it runs, from
// a snapshot, from kine, and while they are written. plinth then serves what the kube-apiserver has served. It runs with
// TestKubeAPIServer.
func TestImportAPIServer(t *testing.T) {
	if os.Getenv(apiserverVariable) == "" {
		t.Skipf("%s is not set; make test-etcd sets it", apiserverVariable)
	}
	program, _ := buildAPIServer(t, "cluster", t.TempDir())
	t.Run("etcd", func(t *testing.T) {
		url := "http://" + etcdtest.StartAt(t)
		written := writeObjects(t, program, url, nil)
		eachWanted(t, apiserverVariable, func(t *testing.T, d logtest.Dialect) {
			written.importAndServe(t, d.Fresh(t), "--etcd="+url)
		})
		t.Run("snapshot", func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "snapshot.db")
			out, err := exec.Command(etcdtest.Program(t, "etcdctl"), "--endpoints="+url, "snapshot", "save", file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			written.importAndServe(t, logtest.SQLite(t), "--etcd="+file)
		})
	})
	t.Run("kine", func(t *testing.T) {
		dsn := logtest.Postgres(t)
		written := writeObjects(t, program, "http://"+etcdtest.StartKine(t, dsn), nil)
		written.importAndServe(t, logtest.SQLite(t), "--kine="+dsn)
	})
	t.Run("follow", func(t *testing.T) {
		dsn, url := logtest.SQLite(t), "http://"+etcdtest.StartAt(t)
		var cmd *exec.Cmd
		var stderr *bytes.Buffer
		written := writeObjects(t, program, url, func(encryption string) {
			// A kube-apiserver writes every ten seconds.
			cmd, stderr = plinth(t, nil, "import", "--etcd="+url, "--follow", "--until-quiet=15s", "--dsn="+dsn, "--encryption-provider-config="+encryption)
			must(t, cmd.Start())
		})
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		t.Logf("%s", stderr)
		written.serve(t, dsn)
	})
}

// served is the objects that a server has answered, by path and uid.
type served map[string]map[string]map[string]any

// writtenObjects is what a kube-apiserver has served.
type writtenObjects struct {
	dir, encryption string
	served          served
}

// writeObjects starts a kube-apiserver on an etcd, has it write objects, and stops it. meanwhile, which may
// be nil, is called before it writes.
func writeObjects(t *testing.T, program, etcd string, meanwhile func(encryption string)) *writtenObjects {
	t.Helper()
	_, encryption := recordedEtcd(t)
	s := startAPIServer(t, program, "--etcd-servers="+etcd, "--encryption-provider-config="+encryption, "--runtime-config=api/all=true")
	if meanwhile != nil {
		meanwhile(encryption)
	}
	s.kubectlWith(t, importedDefinition("v1"), "apply", "-f", "-")
	s.kubectl(t, "wait", "crd/cars.acme.io", "--for=condition=Established", "--timeout=60s")
	const car = "apiVersion: acme.io/%s\nkind: Car\nmetadata: {name: %s, namespace: default}\nspec: {weight: 9007199254740993, length: 1.50}\n"
	soon(t, "cars are served", func() bool { return s.command(t, "get", "cars", "-A").Run() == nil })
	s.kubectlWith(t, fmt.Sprintf(car, "v1", "old"), "apply", "--server-side", "-f", "-")
	s.kubectlWith(t, importedDefinition("v2"), "apply", "-f", "-")
	s.kubectlWith(t, importedObjects, "apply", "-f", "-")
	s.kubectl(t, "scale", "deployment/web", "--replicas=5")
	s.kubectl(t, "create", "token", "robot")
	soon(t, "cars are stored in v2", func() bool {
		s.kubectl(t, "delete", "car", "new", "--ignore-not-found")
		s.kubectlWith(t, fmt.Sprintf(car, "v2", "new"), "apply", "--server-side", "-f", "-")
		return strings.Contains(s.kubectl(t, "get", "crd", "cars.acme.io", "-o", "jsonpath={.status.storedVersions}"), "v2")
	})
	w := &writtenObjects{dir: s.dir, encryption: encryption, served: servedBy(t, s.config)}
	s.stop()
	return w
}

func (w *writtenObjects) importAndServe(t *testing.T, dsn, from string) {
	t.Helper()
	code, out := printed(t, "import", from, "--dsn="+dsn, "--encryption-provider-config="+w.encryption, "-o", "json")
	if code != 0 || strings.Contains(out, "notTaken") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	w.serve(t, dsn)
}

// serve compares what plinth serves with what the kube-apiserver has served.
func (w *writtenObjects) serve(t *testing.T, dsn string) {
	t.Helper()
	path := func(name string) string { return filepath.Join(w.dir, name) }
	s := startPlinth(t, nil, "serve", "--listen=127.0.0.1:0", "--data-dir="+t.TempDir(), "--dsn="+dsn, "--encryption-provider-config="+w.encryption, "--controllers=none",
		"--service-cluster-ip-range=10.0.0.0/24", "--runtime-config=api/all=true", "--disable-admission-plugins=ServiceAccount", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+path("server.key"), "--service-account-signing-key-file="+path("server.key"))
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	must(t, err)
	config.QPS = -1
	got := servedBy(t, config)
	compared := 0
	for path, objects := range w.served {
		for uid, want := range objects {
			if changesByItself(want) {
				continue
			}
			compared++
			if diff := cmp.Diff(withoutStatusRule(want), withoutStatusRule(got[path][uid])); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
	}
	t.Logf("%d objects of %d resources were compared", compared, len(w.served))
	if compared < 200 {
		t.Error("these are too few to prove anything")
	}
}

// ownObjects are those that each kube-apiserver, and plinth, keeps as it needs them.
var ownObjects = []string{"kubernetes", "extension-apiserver-authentication"}

// withoutStatusRule returns an object as it is, but the role system:monitoring without the rule that plinth adds to it, and
// without who has written its rules.
func withoutStatusRule(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	rules, _ := object["rules"].([]any)
	if meta["name"] != "system:monitoring" || rules == nil {
		return object
	}
	without, of := maps.Clone(object), maps.Clone(meta)
	delete(of, "managedFields")
	without["metadata"] = of
	without["rules"] = slices.DeleteFunc(slices.Clone(rules), func(rule any) bool {
		urls, _ := rule.(map[string]any)["nonResourceURLs"].([]any)
		return len(urls) == 1 && urls[0] == cluster.StatusPath
	})
	return without
}

func changesByItself(object map[string]any) bool {
	name, _ := object["metadata"].(map[string]any)["name"].(string)
	return slices.Contains(ownObjects, name) || strings.HasPrefix(name, "apiserver-")
}

// servedBy lists all resources in all versions.
func servedBy(t *testing.T, config *clientrest.Config) served {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	_, groups, err := client.Discovery().ServerGroupsAndResources()
	must(t, err)
	all := served{}
	for _, group := range groups {
		root := "/apis/" + group.GroupVersion
		if group.GroupVersion == "v1" {
			root = "/api/v1"
		}
		for _, r := range group.APIResources {
			if slices.Contains(r.Verbs, "list") && r.Name != "componentstatuses" {
				all[root+"/"+r.Name] = listed(t.Context(), t, client, root+"/"+r.Name)
			}
		}
	}
	return all
}

func listed(ctx context.Context, t *testing.T, client kubernetes.Interface, path string) map[string]map[string]any {
	t.Helper()
	answer, err := client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	must(t, err)
	var list struct {
		metav1.TypeMeta
		Items []map[string]any `json:"items"`
	}
	must(t, json.Unmarshal(answer, &list))
	items := map[string]map[string]any{}
	for _, item := range list.Items {
		meta := item["metadata"].(map[string]any)
		delete(meta, "resourceVersion")
		uid, _ := meta["uid"].(string) // resources of plinth's own have none
		items[uid] = item
	}
	return items
}

// importedDefinition is a custom resource that is stored in one of its two versions.
func importedDefinition(stored string) string {
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cars.acme.io}
spec:
  group: acme.io
  scope: Namespaced
  names: {plural: cars, singular: car, kind: Car}
  versions:
`
	for _, version := range []string{"v1", "v2"} {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version, version == stored)
	}
	return text
}

// importedObjects are of resources that differ in how they are stored.
const importedObjects = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {a: b}}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: default}}
- {apiVersion: v1, kind: Secret, metadata: {name: sealed, namespace: default}, type: Opaque, data: {p: cQ==}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: texts, namespace: shop, finalizers: [example.com/keep]}, data: {a: "<é>\n"}, binaryData: {b: AAH/}, immutable: true}
- {apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.244.0.0/24, taints: [{key: k, effect: NoSchedule}]}}
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /v}}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: default}, spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]}}
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}}
- {apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: default}, subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 80}]}]}
- {apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, involvedObject: {kind: Pod, name: p, namespace: default}, reason: Started, message: m, type: Normal, source: {component: kubelet}, count: 3}
- {apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 100m}}]}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {pods: "10"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: c, image: nginx, env: [{name: A, value: b}], resources: {requests: {cpu: 0.5, memory: 1e3}}}]}}
- {apiVersion: v1, kind: ReplicationController, metadata: {name: rc, namespace: default}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: nginx}]}}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}}}
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: default}, spec: {serviceName: web, selector: {matchLabels: {app: s}}, template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: nginx}]}}}}
- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: default}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: nginx}]}}}}
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: cron, namespace: default}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}}}}}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: default}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}}}}
- {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: default}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: default}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}
- {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: shop}, spec: {podSelector: {}}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: shop}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: robot, namespace: default}]}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: example.com/p}
- {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: leader, namespace: default}, spec: {holderIdentity: me, leaseDurationSeconds: 15}}
- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: default}, addressType: IPv4, endpoints: [{addresses: [192.0.2.7]}], ports: [{port: 80}]}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [x]}]}, validations: [{expression: "true"}]}}
`
