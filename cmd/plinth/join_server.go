package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	netutils "k8s.io/utils/net"
)

// What nodes and the pods on them have to know of a server: its URL, and the address of the cluster's DNS.

const (
	nodeServerHelp = "`URL` at which nodes reach plinth; by default that of the kubeconfig, unless only this machine has it"
	clusterDNSHelp = "`address` of the cluster's DNS service; by default the tenth of the range of Services"
	exampleServer  = "https://plinth.example.com:6443"
)

func clusterDNSFlag(address *net.IP) Flag {
	return Flag{Name: "cluster-dns", Set: ip(address, nil), Help: clusterDNSHelp}
}

func clusterDomainFlag(domain *string) Flag {
	return Flag{Name: "cluster-domain", Set: text(domain, "cluster.local"), Help: "DNS `domain` of the cluster"}
}

// nodeServer returns the URL for nodes: the flag --server, or else that of the kubeconfig. It is none of the loopback network,
// at which a node would find itself.
func nodeServer(flag string, config *clientrest.Config) (u *url.URL, err error) {
	write := "--server: "
	if flag != "" {
		u, err = parseServer(flag)
	} else if u, _, err = clientrest.DefaultServerUrlFor(config); err != nil {
		err = usagef("kubeconfig: %v", err)
	} else {
		write = "--server is missing: the kubeconfig has "
	}
	if err != nil {
		return nil, err
	}
	switch host := strings.ToLower(u.Hostname()); {
	case isOwn(host):
		return nil, usagef("%s%s, at which a node finds itself: write a URL that nodes reach, such as %s", write, u, exampleServer)
	case u.User != nil || net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		return nil, usagef("%s%q, which is no address: write a URL such as %s", write, u.Host, exampleServer)
	}
	return u, nil
}

// isOwn tells whether a name, in lower case, or an address is that of whatever machine uses it.
func isOwn(host string) bool {
	if address := net.ParseIP(host); address != nil {
		return address.IsLoopback() || address.IsUnspecified()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// showsName tells whether the server's certificate is valid for a host. If it cannot be asked, that is not known to be wrong.
func showsName(ctx context.Context, config *clientrest.Config, host string) bool {
	named := clientrest.CopyConfig(config)
	named.ServerName = host
	client, err := kubernetes.NewForConfig(named)
	if err != nil {
		return true
	}
	err = client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var wrong x509.HostnameError
	return !errors.As(err, &wrong)
}

// clusterDNS is the address that clusters have for their DNS service: the tenth of the range whose first is that of the
// Service kubernetes.
func clusterDNS(ctx context.Context, client kubernetes.Interface) (net.IP, error) {
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the range of Services: %w", err)
	}
	first := net.ParseIP(service.Spec.ClusterIP)
	if first == nil {
		return nil, usagef("--cluster-dns is missing: the Service kubernetes has no address")
	}
	return netutils.AddIPOffset(netutils.BigForIP(first), 9), nil
}
