package main

import (
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// TestNodeServer has addresses of flags and kubeconfigs that nodes reach, and such that they do not.
func TestNodeServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, kubeconfig, want, fault string }{
		{"", "https://10.0.0.5:6443", "https://10.0.0.5:6443", ""},
		{"https://[fd00::5]:6443", "https://127.0.0.1:6443", "https://[fd00::5]:6443", ""},
		{"https://API.example.com/base", "", "https://API.example.com/base", ""},
		{"", "https://127.0.0.1:6443", "", "--server is missing: the kubeconfig has https://127.0.0.1:6443, at which a node finds itself"},
		{"", "https://[::]:6443", "", "--server is missing"},
		{"https://127.1.2.3", "https://10.0.0.5:6443", "", "--server: https://127.1.2.3, at which a node finds itself"},
		{"https://a.LocalHost:6443", "", "", "at which a node finds itself"},
		{"https://ann:secret@10.0.0.5", "", "", "which is no address"},
		{"https://a_b", "", "", "which is no address"},
		{"10.0.0.5:6443", "", "", `--server: "10.0.0.5:6443": write a URL`},
	} {
		u, err := nodeServer(c.flag, &clientrest.Config{Host: c.kubeconfig})
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v, %v", c, u, err)
			}
		case err != nil || u.String() != c.want:
			t.Errorf("%+v: %v, %v", c, u, err)
		}
	}
}
