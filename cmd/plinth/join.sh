# Makes this machine a node of a cluster. plinth join-command prints this script below lines that set
# what it uses: node, server, token, ca, dns, domain and minor.
set -eu
root=${DESTDIR-} # files are written below it, and checked there
PATH=$PATH:$root/usr/local/bin # which sudo leaves out on some systems

fail() {
	printf 'join: %s\n' "$*" >&2
	exit 1
}

# put MODE FILE writes its input to the file, as a whole.
put() {
	mkdir -p "$(dirname "$root$2")"
	(umask 077 && cat >"$root$2.new")
	chmod "$1" "$root$2.new"
	mv "$root$2.new" "$root$2"
}

check() {
	[ "$(id -u)" = 0 ] || fail "only root can do this: write sudo"
	[ -d "$root/run/systemd/system" ] || fail "systemd does not run here, which starts the kubelet"
	kubelet=$(command -v kubelet) || fail "there is no kubelet: install that of Kubernetes 1.$minor"
	check_release "$("$kubelet" --version)"
	[ -S "$root/run/containerd/containerd.sock" ] ||
		fail "there is no /run/containerd/containerd.sock: install containerd and start it"
	[ ! -e "$root/etc/kubernetes/kubelet.conf" ] || [ "$(cat "$root/etc/kubernetes/pki/ca.crt" || :)" = "$ca" ] ||
		fail "this is a node of another cluster: remove /etc/kubernetes/kubelet.conf and /var/lib/kubelet/pki first"
}

# check_release refuses a kubelet that is newer than the control plane, or too old for it.
check_release() {
	release=${1#Kubernetes v1.}
	release=${release%%.*}
	case $release in '' | *[!0-9]*) fail "$kubelet --version says \"$1\"" ;; esac
	if [ "$release" -gt "$minor" ] || [ "$release" -lt $((minor - 3)) ]; then
		fail "the kubelet is of Kubernetes 1.$release, and the control plane of 1.$minor:" \
			"install a kubelet from 1.$((minor - 3)) to 1.$minor"
	fi
}

write() {
	printf '%s\n' "$ca" | put 0644 /etc/kubernetes/pki/ca.crt
	put 0600 /etc/kubernetes/bootstrap-kubelet.conf <<-EOF
		apiVersion: v1
		kind: Config
		current-context: bootstrap
		clusters: [{name: bootstrap, cluster: {server: "$server", certificate-authority: /etc/kubernetes/pki/ca.crt}}]
		users: [{name: bootstrap, user: {token: "$token"}}]
		contexts: [{name: bootstrap, context: {cluster: bootstrap, user: bootstrap}}]
	EOF
	# Pods cannot reach the stub of systemd-resolved, which is on the node's loopback network.
	resolv=/etc/resolv.conf
	if grep -qs '^nameserver 127\.0\.0\.53' "$root$resolv"; then resolv=/run/systemd/resolve/resolv.conf; fi
	put 0600 /var/lib/kubelet/config.yaml <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: true}
		  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
		authorization: {mode: Webhook}
		cgroupDriver: systemd
		clusterDNS: ["$dns"]
		clusterDomain: "$domain"
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		resolvConf: $resolv
		rotateCertificates: true
		serverTLSBootstrap: true
	EOF
	start="ExecStart=$kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf"
	start="$start --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --cert-dir=/var/lib/kubelet/pki"
	start="$start --hostname-override=$node \$KUBELET_EXTRA_ARGS"
	put 0644 /etc/systemd/system/kubelet.service <<-EOF
		[Unit]
		Description=kubelet of the node $node
		Wants=network-online.target containerd.service
		After=network-online.target containerd.service
		StartLimitIntervalSec=0
		[Service]
		EnvironmentFile=-/etc/default/kubelet
		$start
		Restart=always
		RestartSec=10
		[Install]
		WantedBy=multi-user.target
	EOF
	# The package of kubeadm has such a file with another ExecStart, which comes before this one.
	put 0644 /etc/systemd/system/kubelet.service.d/90-plinth.conf <<-EOF
		[Service]
		ExecStart=
		$start
	EOF
}

# The last line starts all of it, so that half a script does nothing.
join() {
	check
	write
	systemctl daemon-reload
	systemctl enable kubelet
	systemctl restart kubelet
	echo "The kubelet of $node asks $server for its certificate. Its log: journalctl -u kubelet"
}
join
