package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"sigs.k8s.io/yaml"
)

// addonsOf returns the objects that the command prints, by kind and name. Each has only fields that its kind has.
func addonsOf(t *testing.T, args ...string) map[string]runtime.Object {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(append([]string{"addons", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	all := map[string]runtime.Object{}
	for _, text := range strings.Split(stdout.String(), "\n---\n") {
		var of struct {
			Kind     string
			Metadata struct{ Name string }
		}
		must(t, yaml.Unmarshal([]byte(text), &of))
		object := map[string]runtime.Object{
			"ServiceAccount": &corev1.ServiceAccount{}, "ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "Deployment": &appsv1.Deployment{},
			"DaemonSet": &appsv1.DaemonSet{}, "ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		}[of.Kind]
		must(t, yaml.UnmarshalStrict([]byte(text), object))
		all[of.Kind+"/"+of.Metadata.Name] = object
	}
	return all
}

// TestAddonsKubeProxy reads the configuration that kube-proxy gets.
func TestAddonsKubeProxy(t *testing.T) {
	t.Parallel()
	for ranges, mode := range map[string]proxyconfig.LocalMode{"": "NodeCIDR", "10.244.0.0/16,fd00:1::/56": "ClusterCIDR"} {
		all := addonsOf(t, "kube-proxy", "--server=https://plinth.example.com:6443/", "--cluster-cidr="+ranges)
		if len(all) != 4 {
			t.Errorf("%d objects", len(all))
		}
		files := all["ConfigMap/kube-proxy"].(*corev1.ConfigMap).Data
		var config proxyconfig.KubeProxyConfiguration
		must(t, yaml.UnmarshalStrict([]byte(files["config.yaml"]), &config))
		if config.DetectLocalMode != mode || config.ClusterCIDR != ranges || config.ClientConnection.Kubeconfig != "/etc/kube-proxy/kubeconfig" {
			t.Errorf("configuration: %+v", config)
		}
		client, err := clientcmd.Load([]byte(files["kubeconfig"]))
		must(t, err)
		const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
		cluster, user := usedBy(client)
		if cluster.Server != "https://plinth.example.com:6443" || user.TokenFile != mounted+"token" || cluster.CertificateAuthority != mounted+"ca.crt" {
			t.Errorf("kubeconfig: %+v, token in %q", cluster, user.TokenFile)
		}
	}
}

// TestAddonsCoreDNS reads the manifests of CoreDNS, whose Service leads to its pods.
func TestAddonsCoreDNS(t *testing.T) {
	t.Parallel()
	all := addonsOf(t, "coredns", "--cluster-dns=fd00:2::a", "--cluster-domain=example.org")
	service, pods := all["Service/kube-dns"].(*corev1.Service), all["Deployment/coredns"].(*appsv1.Deployment).Spec.Template
	if service.Spec.ClusterIP != "fd00:2::a" || pods.Labels["k8s-app"] == "" || pods.Labels["k8s-app"] != service.Spec.Selector["k8s-app"] {
		t.Errorf("Service: %+v, pods: %v", service.Spec, pods.Labels)
	}
	if corefile := all["ConfigMap/coredns"].(*corev1.ConfigMap).Data["Corefile"]; !strings.Contains(corefile, "kubernetes example.org in-addr.arpa ip6.arpa {") {
		t.Error(corefile)
	}
	if len(all) != 6 {
		t.Errorf("%d objects", len(all))
	}
}

// TestAddonsRelease compares the images with those of the release of Kubernetes in go.mod.
func TestAddonsRelease(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-m", "-json", "k8s.io/kubernetes").Output()
	must(t, err)
	var module struct{ Version string }
	must(t, json.Unmarshal(out, &module))
	all := addonsOf(t, "--server=https://plinth.example.com:6443", "--cluster-dns=10.96.0.10")
	for _, c := range []struct {
		pods corev1.PodTemplateSpec
		want string
	}{
		{all["DaemonSet/kube-proxy"].(*appsv1.DaemonSet).Spec.Template, "registry.k8s.io/kube-proxy:" + module.Version},
		{all["Deployment/coredns"].(*appsv1.Deployment).Spec.Template, "registry.k8s.io/coredns/coredns:" + constants.CoreDNSVersion},
	} {
		if got := c.pods.Spec.Containers[0].Image; got != c.want {
			t.Errorf("image %s, want %s", got, c.want)
		}
	}
}
