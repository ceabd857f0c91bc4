package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/logging"
)

// configOf returns the configuration that kube-apiserver's flags make. --etcd-servers is added.
func configOf(args ...string) (*apiServerOptions, error) {
	o := &apiServerOptions{serveOptions: newServeOptions()}
	cmd := newAPIServerFor(o)
	if err := cmd.ParseFlags(append([]string{"--etcd-servers=http://127.0.0.1:2379"}, args...)); err != nil {
		return o, cmd.FlagErrorFunc()(cmd, err)
	}
	return o, o.complete()
}

// TestAPIServerMapping has what each flag of kube-apiserver sets that serve does not have under
// the same name and with the same meaning, and some of those that it has.
func TestAPIServerMapping(t *testing.T) {
	const most = math.MaxInt32
	others := func(names ...string) []string {
		return slices.DeleteFunc(admission.Names(), func(name string) bool { return slices.Contains(names, name) })
	}
	for _, tt := range []struct {
		args string
		got  func(c *server.Config) any
		want any
	}{
		{"", func(c *server.Config) any { return c.Listen }, "0.0.0.0:6443"},
		{"--bind-address 127.0.0.1 --secure-port=1", func(c *server.Config) any { return c.Listen }, "127.0.0.1:1"},
		{"--bind_address ::1 --secure_port 65535", func(c *server.Config) any { return c.Listen }, "[::1]:65535"},
		{"", func(c *server.Config) any { return c.DataDir }, ""},
		{"", func(c *server.Config) any { return c.Controllers }, []string{}},
		{"", func(c *server.Config) any { return c.Authorization.Modes }, []string{"AlwaysAllow"}},
		{"--authorization-mode RBAC", func(c *server.Config) any { return c.Authorization.Modes }, []string{"RBAC"}},
		{"--authorization-mode=Node,RBAC", func(c *server.Config) any { return c.Authorization.Modes }, []string{"Node", "RBAC"}},
		{"--authorization-config=x", func(c *server.Config) any { return c.Authorization.Modes }, []string(nil)},
		{"--authorization-config=x", func(c *server.Config) any { return c.Authorization.AuthorizationConfigurationFile }, "x"},
		{"", func(c *server.Config) any { return c.ServiceClusterIPRange }, []string{"10.0.0.0/24"}},
		{"--service-cluster-ip-range=10.1.0.0/16,fd00::/112", func(c *server.Config) any { return c.ServiceClusterIPRange }, []string{"10.1.0.0/16", "fd00::/112"}},
		{"", func(c *server.Config) any { return c.Debugging.Profiling }, true},
		{"--profiling=false", func(c *server.Config) any { return c.Debugging.Profiling }, false},
		{"--runtime-config=api/legacy=false,api/alpha=false", func(c *server.Config) any { return c.RuntimeConfig }, map[string]string{"api/legacy": "false", "api/alpha": "false"}},

		{"", func(c *server.Config) any { return c.History }, 5 * time.Minute},
		{"--etcd-compaction-interval 1h", func(c *server.Config) any { return c.History }, time.Hour},
		{"--etcd-compaction-interval=0", func(c *server.Config) any { return c.History }, time.Duration(-1)},
		{"--event-ttl=0s", func(c *server.Config) any { return c.EventTTL }, time.Duration(-1)},
		{"--storage-initialization-timeout=1s", func(c *server.Config) any { return c.DatabaseTimeout }, time.Second},

		{"", func(c *server.Config) any { return c.EnableAdmissionPlugins }, []string(nil)},
		{"", func(c *server.Config) any { return c.DisableAdmissionPlugins }, []string{"NodeRestriction"}},
		{"--disable-admission-plugins=ServiceAccount", func(c *server.Config) any { return c.DisableAdmissionPlugins }, []string{"ServiceAccount", "NodeRestriction"}},
		{"--enable-admission-plugins=NodeRestriction", func(c *server.Config) any { return c.DisableAdmissionPlugins }, []string(nil)},
		{"--admission-control=", func(c *server.Config) any { return c.DisableAdmissionPlugins }, append(others(), "NodeRestriction")},
		{"--admission-control=LimitRanger,AlwaysAdmit", func(c *server.Config) any { return c.EnableAdmissionPlugins }, []string{"LimitRanger", "AlwaysAdmit"}},
		{"--admission-control=LimitRanger,NodeRestriction", func(c *server.Config) any { return c.DisableAdmissionPlugins }, others("LimitRanger", "NodeRestriction")},

		{"", func(c *server.Config) any { return [2]int{c.MaxReads, c.MaxWrites} }, [2]int{400, 200}},
		{"--max-requests-inflight=0 --max-mutating-requests-inflight=0 --enable-priority-and-fairness=false", func(c *server.Config) any { return [2]int{c.MaxReads, c.MaxWrites} }, [2]int{most, most}},
		{"--max-requests-inflight=0 --enable-priority-and-fairness=false", func(c *server.Config) any { return [2]int{c.MaxReads, c.MaxWrites} }, [2]int{most, 200}},
		{"--max-mutating-requests-inflight=0", func(c *server.Config) any { return [2]int{c.MaxReads, c.MaxWrites} }, [2]int{399, 1}},

		{"--service-account-issuer https://localhost --service-account-issuer /tmp/apiserver.crt", func(c *server.Config) any { return c.Tokens.Issuers }, []string{"https://localhost", "/tmp/apiserver.crt"}},
		{"--service-account-signing-key-file a --service-account-signing-key-file b", func(c *server.Config) any { return c.Tokens.SigningKeyFile }, "b"},
		{"--service-account-key-file=a --service-account-key-file=b", func(c *server.Config) any { return c.Tokens.KeyFiles }, []string{"a", "b"}},
		{"--token-auth-file=a", func(c *server.Config) any { return c.Tokens.TokenFile }, "a"},
		{"--client-ca-file a", func(c *server.Config) any { return c.Authentication.ClientCert.ClientCA }, "a"},
		{"--anonymous-auth=false", func(c *server.Config) any { return c.Authentication.Anonymous.Allow }, false},
		{"--requestheader-client-ca-file=a", func(c *server.Config) any { return c.Authentication.RequestHeader.ClientCAFile }, "a"},
		{"--oidc-issuer-url=https://a", func(c *server.Config) any { return c.Authentication.OIDC.IssuerURL }, "https://a"},
		{"--enable-bootstrap-token-auth", func(c *server.Config) any { return c.Authentication.BootstrapToken.Enable }, true},
		{"--tls-cert-file=a --tls-private-key-file=b", func(c *server.Config) any { return [2]string{c.Serving.CertFile, c.Serving.KeyFile} }, [2]string{"a", "b"}},
		{"--encryption-provider-config=a", func(c *server.Config) any { return c.Encryption.ConfigFile }, "a"},
		{"--audit-policy-file=a --audit-log-path=b", func(c *server.Config) any { return [2]string{c.Audit.PolicyFile, c.Audit.LogOptions.Path} }, [2]string{"a", "b"}},
		{"--audit-webhook-batch-initial-backoff=3s", func(c *server.Config) any { return c.Audit.WebhookOptions.InitialBackoff }, 3 * time.Second},
	} {
		o, err := configOf(strings.Fields(tt.args)...)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, tt.got(&o.config)); diff != "" {
			t.Errorf("%s:\n%s", tt.args, diff)
		}
	}
}

// TestAPIServerProcessFlags has the flags that are not of the server's configuration.
func TestAPIServerProcessFlags(t *testing.T) {
	o, err := configOf("--allow-privileged", "-v=3", "--logging-format=json", "--feature-gates=A=true", "--feature-gates=kube:B=false,C=true", "--cert-dir", "x")
	if err != nil || !o.privileged || o.logging.Verbosity != 3 || o.logging.Format != logging.JSON || o.certDir != "x" {
		t.Errorf("%+v, %v", o, err)
	}
	if want := []string{"A=true", "kube:B=false,C=true"}; !slices.Equal(o.gates, want) {
		t.Errorf("feature gates %v, want %v", o.gates, want)
	}
	if o, _ := configOf(); o.privileged {
		t.Error("privileged containers are allowed by default")
	}
}

func TestAPIServerBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--insecure-port=0":          "unknown flag --insecure-port; did you mean --secure-port?",
		"--frobnicate":               "unknown flag --frobnicate; see kube-apiserver --help",
		"--data-dir=x":               "unknown flag --data-dir",
		"--secure-port=0":            "--secure-port 0: write a number from 1 to 65535",
		"--secure-port=x":            `--secure-port: "x": write a whole number`,
		"--bind-address=x":           `--bind-address: "x": write an IP address`,
		"--etcd-servers":             "--etcd-servers needs a value",
		"--max-requests-inflight=-1": "",
		"--admission-control=LimitRanger --enable-admission-plugins=LimitRanger": "--admission-control stands alone",
		"--max-requests-inflight=0 --max-mutating-requests-inflight=0":           "write a number above 0 for one of them",
	} {
		_, err := configOf(strings.Fields(args)...)
		if want == "" && err == nil { // the server finds it
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %s", args, err, want)
		}
	}
	o := &apiServerOptions{serveOptions: newServeOptions()}
	newAPIServerFor(o)
	if err := o.complete(); err == nil || !strings.Contains(err.Error(), "--etcd-servers is missing") {
		t.Errorf("without --etcd-servers: %v", err)
	}
	o.gates = []string{"other:A=true"}
	if err := o.setGates(); err == nil || !strings.Contains(err.Error(), `component "other" is not known`) {
		t.Errorf("feature of another component: %v", err)
	}
}
