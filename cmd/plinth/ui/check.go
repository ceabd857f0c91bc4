package ui

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
)

// notKubernetesError is the error for a server that answers, but not as a Kubernetes API does.
type notKubernetesError struct{ server string }

func (e *notKubernetesError) Error() string {
	return fmt.Sprintf("%s is no Kubernetes API: it shows no version of one at /version", e.server)
}

// Check asks a server for its version: whether it can be reached, and is a Kubernetes API.
func Check(ctx context.Context, config *clientrest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return checkVersion(ctx, client.RESTClient(), config.Host)
}

func checkVersion(ctx context.Context, client clientrest.Interface, server string) error {
	text, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if apierrors.IsNotFound(err) || err == nil && (json.Unmarshal(text, &info) != nil || info.GitVersion == "") {
		return &notKubernetesError{server}
	}
	return err
}
