package encryption_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/encryption"
)

// BenchmarkTransform is what one value of 1 KiB costs on its way into the log and back.
func BenchmarkTransform(b *testing.B) {
	value := append([]byte(`{"kind":"Secret"`), make([]byte, 1<<10)...)
	for _, provider := range []string{"none", "aesgcm a", "aescbc a", "secretbox a"} {
		o := encryption.Options{}
		if provider != "none" {
			o.ConfigFile = configFile(b, secretsBy(provider))
		}
		for _, key := range []string{secretKeys + "a", "/registry/core/pods/default/a"} {
			p, err := encryption.Open(o, "bench")
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%s", provider, key[15:19]), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					stored, err := p.ToStorage(b.Context(), key, value)
					if err != nil {
						b.Fatal(err)
					}
					if _, _, err := p.FromStorage(b.Context(), key, stored); err != nil {
						b.Fatal(err)
					}
				}
			})
			p.Close()
		}
	}
}

// BenchmarkSecrets creates and gets Secrets through the whole server, and ConfigMaps beside them.
func BenchmarkSecrets(b *testing.B) {
	for _, provider := range []string{"identity", "aesgcm a"} {
		s := start(b, logtest.SQLite(b)+"?durability=off", encryption.Options{ConfigFile: configFile(b, secretsBy(provider))})
		n := 0
		b.Run("create/"+provider, func(b *testing.B) {
			for b.Loop() {
				n++
				s.put(b, fmt.Sprintf("s%d", n), "1")
			}
		})
		b.Run("get/"+provider, func(b *testing.B) {
			for b.Loop() {
				s.get(b, "s1")
			}
		})
		b.Run("createConfigMap/"+provider, func(b *testing.B) {
			for b.Loop() {
				n++
				c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", n)}, Data: map[string]string{"a": "1"}}
				if _, err := s.client.CoreV1().ConfigMaps("default").Create(b.Context(), c, metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		s.stop(b)
	}
}
