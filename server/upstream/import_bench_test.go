package upstream_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/upstream"
)

// BenchmarkImport takes a snapshot of 100,000 objects into a file of SQLite: Pods and ConfigMaps of one
// to two kilobytes in protobuf.
func BenchmarkImport(b *testing.B) {
	const objects = 100_000
	file, size := largeSnapshot(b, objects)
	p, err := encryption.Open(encryption.Options{}, "test")
	must(b, err)
	defer p.Close()
	for b.Loop() {
		source, err := upstream.OpenSnapshot(b.Context(), file)
		must(b, err)
		report := take(b, source, openLog(b, "sqlite://"+filepath.Join(b.TempDir(), "plinth.db")), p)
		must(b, source.Close())
		if report.Objects != objects {
			b.Fatalf("%d objects were taken", report.Objects)
		}
	}
	b.ReportMetric(objects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(size)/objects, "bytes/object")
}

// largeSnapshot returns a snapshot with n objects, and the bytes of their values.
func largeSnapshot(b *testing.B, n int) (file string, size int) {
	b.Helper()
	file = filepath.Join(b.TempDir(), "db")
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true})
	must(b, err)
	must(b, db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		must(b, err)
		_, err = tx.CreateBucket([]byte("meta"))
		must(b, err)
		keys.FillPercent = 0.9
		for i := range n {
			kv := largeObject(b, i)
			kv.ModRevision, kv.CreateRevision, kv.Version = int64(i+2), int64(i+2), 1
			value, err := proto.Marshal(kv)
			must(b, err)
			size += len(kv.Value)
			at := append(binary.BigEndian.AppendUint64(nil, uint64(i+2)), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
			must(b, keys.Put(at, value))
		}
		return nil
	}))
	must(b, db.Close())
	content, err := os.ReadFile(file)
	must(b, err)
	must(b, os.WriteFile(file, summed(content), 0o600))
	return file, size
}

func largeObject(b *testing.B, i int) *mvccpb.KeyValue {
	b.Helper()
	meta := metav1.ObjectMeta{
		Namespace: fmt.Sprintf("n-%d", i%100), Name: fmt.Sprintf("object-%06d", i), UID: types.UID(fmt.Sprintf("7d0f3a86-4c7f-4f6a-9b1e-%012d", i)),
		Labels: map[string]string{"app": "web", "tier": fmt.Sprint(i % 7)}, CreationTimestamp: metav1.Unix(1_700_000_000, 0), Generation: 1,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(
			`{"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}`,
		)}},
	}
	var obj runtime.Object = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: meta, Data: map[string]string{"text": strings.Repeat("some text of it ", 80)}}
	path := "configmaps"
	if i%2 == 0 {
		obj, path = largePod(meta), "pods"
	}
	s := protobuf.NewSerializer(nil, nil)
	value, err := runtime.Encode(s, obj)
	must(b, err)
	return &mvccpb.KeyValue{Key: fmt.Appendf(nil, "/registry/%s/%s/%s", path, meta.Namespace, meta.Name), Value: value}
}

func largePod(meta metav1.ObjectMeta) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: meta}
	for _, name := range []string{"web", "proxy", "metrics", "logs"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name + ":v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Env:       []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "LEVEL", Value: "info"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}},
		})
	}
	pod.Spec.NodeName, pod.Status.Phase, pod.Status.PodIP = "node-1", corev1.PodRunning, "10.1.2.3"
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: "True", LastTransitionTime: metav1.Unix(1_700_000_000, 0)})
	}
	return pod
}
