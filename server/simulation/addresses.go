package simulation

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// addressOf returns the address that a pod is to have: one of its own, or the node's.
func (n *node) addressOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.HostNetwork {
		return n.ip, nil
	}
	if err := n.findNetwork(ctx); err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	free := byte(0)
	for last := byte(254); last > 0; last-- {
		if n.used[last] == pod.UID {
			return n.address(last), nil
		} else if n.used[last] == "" {
			free = last
		}
	}
	if free == 0 {
		return "", fmt.Errorf("node %s has no address left", n.name)
	}
	n.used[free] = pod.UID
	return n.address(free), nil
}

// address is called with n.mu held, when the network is known.
func (n *node) address(last byte) string {
	return netip.AddrFrom4([4]byte{n.network[0], n.network[1], n.network[2], last}).String()
}

// findNetwork finds out which addresses the node was given for its pods.
func (n *node) findNetwork(ctx context.Context) error {
	n.mu.Lock()
	known := n.network != nil
	n.mu.Unlock()
	if known {
		return nil
	}
	now, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, text := range now.Spec.PodCIDRs {
		if r, err := netip.ParsePrefix(text); err == nil && r.Addr().Is4() {
			first := r.Masked().Addr().As4()
			n.mu.Lock()
			n.network = first[:3]
			n.mu.Unlock()
			return nil
		}
	}
	return fmt.Errorf("node %s was given no addresses of IPv4 for its pods yet", n.name)
}

// keepAddress notes the address that a pod has, as after a restart.
func (n *node) keepAddress(pod *corev1.Pod) {
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !address.Is4() || pod.Spec.HostNetwork {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used[address.As4()[3]] = pod.UID
}

func (n *node) freeAddress(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for last, uid := range n.used {
		if uid == pod.UID {
			delete(n.used, last)
		}
	}
}

// keepOnly frees the addresses of pods that are not there any more.
func (n *node) keepOnly(there map[types.UID]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for last, uid := range n.used {
		if !there[uid] {
			delete(n.used, last)
		}
	}
}
