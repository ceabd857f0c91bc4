package main

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
