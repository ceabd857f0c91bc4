//go:build cluster

package upstream

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	componentconfig "k8s.io/component-base/config"

	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/kind"
)

// clients makes the clients of a component. It is a clientbuilder.ControllerClientBuilder of upstream's, each of whose names is
// a service account in kube-system, unless who says otherwise.
type clients struct {
	host       controllers.Host
	component  string
	connection componentconfig.ClientConnectionConfiguration
	limited    bool      // connection's QPS and Burst are what the user wants; else there is no limit
	who        user.Info // nil: a service account of the name
}

// Config returns the configuration of a client. Its name is also that of the manager of fields.
func (c clients) Config(name string) (*clientrest.Config, error) {
	who := c.who
	if who == nil {
		who = &user.DefaultInfo{
			Name:   apiserviceaccount.MakeUsername(metav1.NamespaceSystem, name),
			Groups: append(apiserviceaccount.MakeGroupNames(metav1.NamespaceSystem), user.AllAuthenticated),
		}
	}
	config := clientrest.CopyConfig(c.host.As(who))
	config.UserAgent = c.component + "/" + kind.Release + "/" + name
	config.ContentType, config.AcceptContentTypes = c.connection.ContentType, c.connection.AcceptContentTypes
	if c.limited {
		config.QPS, config.Burst = c.connection.QPS, int(c.connection.Burst)
	}
	return config, nil
}

// Client returns a client.
func (c clients) Client(name string) (kubernetes.Interface, error) {
	config, err := c.Config(name)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client %s: %w", name, err)
	}
	return client, nil
}

// DiscoveryClient returns a client for discovery.
func (c clients) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	client, err := c.Client(name)
	if err != nil {
		return nil, err
	}
	return client.Discovery(), nil
}

// ConfigOrDie panics instead of ending the process.
func (c clients) ConfigOrDie(name string) *clientrest.Config { return must(c.Config(name)) }

// ClientOrDie panics instead of ending the process.
func (c clients) ClientOrDie(name string) kubernetes.Interface { return must(c.Client(name)) }

// DiscoveryClientOrDie panics instead of ending the process.
func (c clients) DiscoveryClientOrDie(name string) discovery.DiscoveryInterface {
	return must(c.DiscoveryClient(name))
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
