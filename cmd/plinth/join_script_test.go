package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// aMachine is where the script of a node runs: a root below which it writes, and programs of the node that only record.
type aMachine struct{ root, bin string }

func newMachine(t *testing.T) *aMachine {
	t.Helper()
	root, err := os.MkdirTemp("", "join-") // t.TempDir may be too long for the path of a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	m := &aMachine{root, filepath.Join(root, "bin")}
	for _, dir := range []string{m.bin, filepath.Join(root, "run/systemd/system"), filepath.Join(root, "run/containerd")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	l, err := net.Listen("unix", filepath.Join(root, "run/containerd/containerd.sock"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	m.program(t, "id", "echo 0")
	m.program(t, "sudo", `exec "$@"`)
	m.program(t, "kubelet", "echo Kubernetes v1.37.2")
	m.program(t, "systemctl", `echo "$@" >>"$DESTDIR/systemctl.log"`)
	return m
}

func (m *aMachine) program(t *testing.T, name, script string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(m.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// run has a shell run a text there.
func (m *aMachine) run(shell, text string) (string, error) {
	cmd := exec.Command(shell)
	cmd.Stdin = strings.NewReader(text)
	cmd.Env = []string{"PATH=" + m.bin + ":/usr/bin:/bin", "DESTDIR=" + m.root}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// files returns what the script has written, with modes.
func (m *aMachine) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"etc", "var"} {
		err := filepath.WalkDir(filepath.Join(m.root, dir), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
				return nil
			}
			must(t, err)
			info, err := d.Info()
			must(t, err)
			text, err := os.ReadFile(path)
			must(t, err)
			all[strings.TrimPrefix(path, m.root)+" "+info.Mode().String()] = string(text)
			return nil
		})
		must(t, err)
	}
	return all
}

func (m *aMachine) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, name))
	must(t, err)
	return text
}

func aJoinScript() *joinScript {
	return &joinScript{
		node: "node-1", server: "https://plinth.example.com:6443", token: "abcdef.0123456789abcdef", ca: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
		dns: "10.96.0.10", domain: "cluster.local", minor: "37",
	}
}

// TestJoinLine pastes the line into shells, twice. The second time changes nothing and starts the kubelet again.
func TestJoinLine(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash"} {
		m, s := newMachine(t), aJoinScript()
		out, err := m.run(shell, s.line())
		if err != nil || !strings.Contains(out, "The kubelet of node-1 asks https://plinth.example.com:6443") || strings.Contains(out, s.token) {
			t.Fatalf("%s: %v: %s", shell, err, out)
		}
		m.checkBootstrap(t, s)
		m.checkConfiguration(t, "/etc/resolv.conf")
		first := m.files(t)
		if out, err := m.run(shell, s.line()); err != nil {
			t.Fatalf("%s: again: %v: %s", shell, err, out)
		}
		if diff := cmp.Diff(first, m.files(t)); diff != "" {
			t.Errorf("%s: the second time changes files: %s", shell, diff)
		}
		const once = "daemon-reload\nenable kubelet\nrestart kubelet\n"
		if log := string(m.read(t, "systemctl.log")); log != once+once {
			t.Errorf("%s: systemctl: %s", shell, log)
		}
		start := "ExecStart=" + m.bin + "/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf" +
			" --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --cert-dir=/var/lib/kubelet/pki --hostname-override=node-1 $KUBELET_EXTRA_ARGS\n"
		for name, want := range map[string]string{
			"/etc/kubernetes/pki/ca.crt -rw-r--r--":                           s.ca,
			"/etc/systemd/system/kubelet.service.d/90-plinth.conf -rw-r--r--": "[Service]\nExecStart=\n" + start,
			"/etc/systemd/system/kubelet.service -rw-r--r--":                  "[Service]\nEnvironmentFile=-/etc/default/kubelet\n" + start + "Restart=always\n",
			"/etc/kubernetes/bootstrap-kubelet.conf -rw-------":               s.token,
			"/var/lib/kubelet/config.yaml -rw-------":                         "KubeletConfiguration",
		} {
			if !strings.Contains(first[name], want) {
				t.Errorf("%s: %s: want %q in %q", shell, name, want, first)
			}
			delete(first, name)
		}
		if len(first) > 0 {
			t.Errorf("%s: more files: %q", shell, first)
		}
	}
}

func (m *aMachine) checkBootstrap(t *testing.T, s *joinScript) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(m.root, "etc/kubernetes/bootstrap-kubelet.conf"))
	must(t, err)
	cluster, user := usedBy(config)
	if cluster.Server != s.server || user.Token != s.token || cluster.CertificateAuthority != "/etc/kubernetes/pki/ca.crt" {
		t.Errorf("bootstrap kubeconfig: %+v, token %q", cluster, user.Token)
	}
}

// usedBy returns what the current context of a kubeconfig names.
func usedBy(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	context := config.Contexts[config.CurrentContext]
	return config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
}

func (m *aMachine) checkConfiguration(t *testing.T, resolv string) {
	t.Helper()
	yes, no := true, false
	var got kubeletconfig.KubeletConfiguration
	must(t, yaml.UnmarshalStrict(m.read(t, "var/lib/kubelet/config.yaml"), &got))
	want := kubeletconfig.KubeletConfiguration{
		Authentication: kubeletconfig.KubeletAuthentication{
			Anonymous: kubeletconfig.KubeletAnonymousAuthentication{Enabled: &no},
			Webhook:   kubeletconfig.KubeletWebhookAuthentication{Enabled: &yes},
			X509:      kubeletconfig.KubeletX509Authentication{ClientCAFile: "/etc/kubernetes/pki/ca.crt"},
		},
		Authorization: kubeletconfig.KubeletAuthorization{Mode: kubeletconfig.KubeletAuthorizationModeWebhook},
		CgroupDriver:  "systemd", ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local",
		ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock", ResolverConfig: &resolv, RotateCertificates: true, ServerTLSBootstrap: true,
	}
	want.APIVersion, want.Kind = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestJoinRefuses has machines on which the script ends with one line, and writes nothing.
func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(*testing.T, *aMachine) {
		return func(t *testing.T, m *aMachine) { must(t, os.RemoveAll(filepath.Join(m.root, name))) }
	}
	program := func(name, script string) func(*testing.T, *aMachine) {
		return func(t *testing.T, m *aMachine) { m.program(t, name, script) }
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *aMachine)
		want   string // "": the script works
	}{
		"a user":              {program("id", "echo 1000"), "only root can do this"},
		"another init":        {remove("run/systemd"), "systemd does not run here"},
		"no kubelet":          {remove("bin/kubelet"), "there is no kubelet: install that of Kubernetes 1.37"},
		"no containerd":       {remove("run/containerd"), "there is no /run/containerd/containerd.sock"},
		"newer":               {program("kubelet", "echo Kubernetes v1.38.0"), "the kubelet is of Kubernetes 1.38, and the control plane of 1.37: install a kubelet from 1.34 to 1.37"},
		"too old":             {program("kubelet", "echo Kubernetes v1.33.13"), "the kubelet is of Kubernetes 1.33"},
		"the oldest":          {program("kubelet", "echo Kubernetes v1.34.0"), ""},
		"a release candidate": {program("kubelet", "echo Kubernetes v1.37.0-rc.1"), ""},
		"no release":          {program("kubelet", "echo bash: error"), `kubelet --version says "bash: error"`},
		"a broken kubelet":    {program("kubelet", "exit 1"), `kubelet --version says ""`},
		"another cluster's": {func(t *testing.T, m *aMachine) {
			must(t, os.MkdirAll(filepath.Join(m.root, "etc/kubernetes/pki"), 0o755))
			must(t, os.WriteFile(filepath.Join(m.root, "etc/kubernetes/kubelet.conf"), nil, 0o600))
			must(t, os.WriteFile(filepath.Join(m.root, "etc/kubernetes/pki/ca.crt"), []byte("another"), 0o600))
		}, "this is a node of another cluster"},
	} {
		m := newMachine(t)
		c.change(t, m)
		before := m.files(t)
		out, err := m.run("sh", aJoinScript().line())
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(out, "join: ") || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %v: %s; want %s", name, err, out, c.want)
		}
		if diff := cmp.Diff(before, m.files(t)); diff != "" {
			t.Errorf("%s: files: %s", name, diff)
		}
	}
}

// TestJoinScriptCut runs beginnings of the script, as after a connection that was lost.
func TestJoinScriptCut(t *testing.T) {
	t.Parallel()
	m, text := newMachine(t), aJoinScript().text()
	for at := range 20 {
		out, _ := m.run("sh", text[:at*(len(text)-len("join\n"))/19])
		if files := m.files(t); len(files) > 0 {
			t.Fatalf("the first %d of 20 parts: %s, files %q", at, out, files)
		}
	}
}

// TestJoinResolved has systemd-resolved run on the machine.
func TestJoinResolved(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, os.MkdirAll(filepath.Join(m.root, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(m.root, "etc/resolv.conf"), []byte("# of systemd-resolved\nnameserver 127.0.0.53\n"), 0o644))
	if out, err := m.run("sh", aJoinScript().line()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.checkConfiguration(t, "/run/systemd/resolve/resolv.conf")
}

// TestJoinScriptQuotes has values that a shell could misunderstand.
func TestJoinScriptQuotes(t *testing.T) {
	t.Parallel()
	s := aJoinScript()
	s.ca = "it's $HOME `id` \\ \"x\"\n\n"
	m := newMachine(t)
	if out, err := m.run("sh", s.line()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := string(m.read(t, "etc/kubernetes/pki/ca.crt")); got != strings.TrimSpace(s.ca)+"\n" {
		t.Errorf("%q", got)
	}
}
