package ui

import (
	"context"

	"k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
)

// Check asks a server for its version: whether it can be reached, and is a Kubernetes API.
func Check(ctx context.Context, config *clientrest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	return err
}
