package main

// etcdIgnored are the flags of etcd 3.5 to 3.7 that have no effect on plinth. A question mark
// stands behind those that need no value.
const etcdIgnored = `
auth-token auth-token-ttl backend-batch-interval backend-batch-limit backend-bbolt-freelist-type
bcrypt-cost bootstrap-defrag-threshold-megabytes client-cert-file client-key-file
cluster-active-size? cluster-remove-delay? cluster-sync-interval? compact-hash-check-time
compaction-batch-limit compaction-sleep-interval config? corrupt-check-time discovery
discovery-cacert discovery-cert discovery-dial-timeout discovery-endpoints discovery-fallback
discovery-insecure-skip-tls-verify? discovery-insecure-transport? discovery-keepalive-time
discovery-keepalive-timeout discovery-key discovery-password discovery-proxy
discovery-request-timeout discovery-srv discovery-srv-name discovery-token discovery-user
distributed-tracing-address distributed-tracing-instance-id distributed-tracing-sampling-rate
distributed-tracing-service-name downgrade-check-time election-timeout enable-distributed-tracing?
enable-grpc-gateway? enable-log-rotation? enable-pprof? enable-v2?
experimental-bootstrap-defrag-threshold-megabytes experimental-compact-hash-check-enabled?
experimental-compact-hash-check-time experimental-compaction-batch-limit
experimental-compaction-sleep-interval experimental-corrupt-check-time
experimental-distributed-tracing-address experimental-distributed-tracing-instance-id
experimental-distributed-tracing-sampling-rate experimental-distributed-tracing-service-name
experimental-downgrade-check-time experimental-enable-distributed-tracing?
experimental-enable-lease-checkpoint? experimental-enable-lease-checkpoint-persist?
experimental-enable-v2v3 experimental-initial-corrupt-check? experimental-memory-mlock?
experimental-peer-skip-client-san-verification? experimental-snapshot-catchup-entries
experimental-stop-grpc-service-on-defrag? experimental-txn-mode-write-with-shared-buffer?
experimental-warning-apply-duration experimental-warning-unary-request-duration feature-gates force?
force-new-cluster? heartbeat-interval initial-advertise-peer-urls initial-cluster
initial-cluster-state initial-cluster-token initial-election-tick-advance? listen-peer-urls
log-outputs log-rotation-config-json logger max-learners max-result-buffer? max-retry-attempts?
max-snapshots max-wals memory-mlock? metrics peer-auto-tls? peer-cert-allowed-cn
peer-cert-allowed-hostname peer-cert-file peer-client-cert-auth? peer-client-cert-file
peer-client-key-file peer-crl-file peer-election-timeout? peer-heartbeat-interval? peer-key-file
peer-skip-client-san-verification? peer-trusted-ca-file pre-vote? proxy proxy-dial-timeout
proxy-failure-wait proxy-read-timeout proxy-refresh-interval proxy-write-timeout raft-read-timeout
raft-write-timeout retry-interval? snapshot? snapshot-catchup-entries snapshot-count
socket-reuse-address? socket-reuse-port? strict-reconfig-check? v2-deprecation vv? wal-dir
warning-apply-duration warning-unary-request-duration
`
