package builtin

import (
	"crypto/tls"

	"k8s.io/kubernetes/pkg/cluster/ports"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"

	"github.com/plinth-io/plinth/server/kind"
)

// schedulerPort is where a kube-scheduler serves its health by default.
const schedulerPort = 10259

// componentStatuses checks the parts of a control plane at each request: on this machine, at
// their default ports, as upstream does. The database takes the place of etcd.
func (o Options) componentStatuses() *kind.Kind {
	return &kind.Kind{
		Resource: "componentstatuses", Singular: "componentstatus", Kind: "ComponentStatus",
		ShortNames: []string{"cs"},
		Verbs:      []string{"get", "list"},
		Observed:   &componentstatus.REST{GetServersToValidate: o.components, TableConvertor: columns()},
	}
}

func (o Options) components() map[string]componentstatus.Server {
	return map[string]componentstatus.Server{
		"controller-manager": onThisMachine(ports.KubeControllerManagerPort),
		"scheduler":          onThisMachine(schedulerPort),
		"database":           database(o.Database),
	}
}

// onThisMachine is the health check of another program, whose certificate is not verified.
func onThisMachine(port int) componentstatus.Server {
	return &componentstatus.HttpServer{
		EnableHTTPS: true, TLSConfig: &tls.Config{InsecureSkipVerify: true},
		Addr: "127.0.0.1", Port: port, Path: "/healthz",
	}
}

// database is the health check of the database; nil: its state is unknown.
type database func() error

// DoServerCheck implements componentstatus.Server.
func (d database) DoServerCheck() (probe.Result, string, error) {
	if d == nil {
		return probe.Unknown, "", nil
	}
	if err := d(); err != nil {
		return probe.Failure, "", err
	}
	return probe.Success, "ok", nil
}
