package main

import (
	"fmt"
	"net"
	"time"
)

// flags returns kube-apiserver's flags: those of serve that it has, too, and those that say otherwise what serve has
// others for.
func (o *apiServerOptions) flags(serve []Flag) []Flag {
	c := &o.config
	return append(inDropIn(serve),
		Flag{Name: "bind-address", Set: ip(&o.bindAddress, net.IPv4zero), For: &c.Listen,
			Help: "IP `address` to serve on"},
		Flag{Name: "secure-port", Set: number(&o.securePort, 6443), For: &c.Listen, Check: o.checkPort,
			Help: "`port` to serve on"},
		Flag{Name: "cert-dir", Set: text(&o.certDir, "/var/run/kubernetes"),
			Help: "`directory` of apiserver.crt and apiserver.key, which are made if they are missing; not with --tls-cert-file"},
		Flag{Name: "etcd-servers", Set: list(&o.etcdServers, nil), For: &c.DSN, Check: o.checkServers,
			Help: "http `URL` of the etcd that plinth is, too, which knows the database"},
		Flag{Name: "etcd-prefix", Set: text(&o.etcdPrefix, "/registry"),
			Help: "`prefix` of all keys: other prefixes have other databases"},
		Flag{Name: "storage-initialization-timeout", Set: period(&c.DatabaseTimeout, time.Minute),
			Help: "how long to wait for etcd and the database"},
		Flag{Name: "etcd-compaction-interval", Set: period(&c.History, 5*time.Minute),
			Help: "how long old versions of objects stay readable; 0: for ever"},
		Flag{Name: "admission-control", Set: list(&o.admissionControl, nil),
			Help: "admission `plugins` to run, and no others"},
		featureGatesFlag(repeated(&o.gates, nil)),
		Flag{Name: "logging-format", Set: value(&o.logging.Format), Help: logFormatHelp},
		versionFlag(text(&o.version, "").orAlone("true")),
	)
}

func (o *apiServerOptions) checkPort() string {
	if o.securePort < 1 || o.securePort > 65535 {
		return fmt.Sprintf(" %d: write a number from 1 to 65535", o.securePort)
	}
	return ""
}

func (o *apiServerOptions) checkServers() string {
	if len(o.etcdServers) == 0 {
		return " is missing; write the URL of an etcd that plinth test-assets has made"
	}
	return ""
}

// apiServerIgnored are the flags of kube-apiserver 1.37 that have no effect on the drop-in. A
// question mark stands behind those that need no value.
const apiServerIgnored = `
aggregator-reject-forwarding-redirect? allow-metric-labels allow-metric-labels-manifest
apiserver-count coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
coordinated-leadership-retry-period cors-allowed-origins debug-socket-path
default-watch-cache-size delete-collection-workers disable-http2-serving? disabled-metrics
egress-selector-config-file
enable-aggregator-routing? enable-garbage-collector? enable-logs-handler? endpoint-reconciler-type
etcd-cafile etcd-certfile etcd-count-metric-poll-period etcd-db-metric-poll-interval
etcd-healthcheck-timeout etcd-keyfile etcd-readycheck-timeout etcd-servers-overrides
external-hostname kubelet-port kubelet-read-only-port kubelet-timeout kubernetes-service-node-port
lease-reuse-duration-seconds livez-grace-period log-flush-frequency log-json-info-buffer-size
log-json-split-stream? log-text-info-buffer-size log-text-split-stream?
max-connection-bytes-per-sec min-request-timeout peer-advertise-ip
peer-advertise-port peer-ca-file permit-address-sharing? permit-port-sharing?
proxy-client-cert-file proxy-client-key-file
service-account-lookup? service-account-signing-endpoint show-hidden-metrics-for-version
shutdown-send-retry-after? shutdown-watch-termination-grace-period storage-backend
storage-media-type strict-transport-security-directives tracing-config-file
vmodule watch-cache-sizes watch-cache?
`
