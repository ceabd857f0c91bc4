package builtin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apirest "k8s.io/apiserver/pkg/registry/rest"
)

// numericPort is a proxy to pods or nodes that refuses ports which are not numbers. Only ports
// of Services have names, and upstream's proxy panics on the address that it makes of a name
// (k8s.io/apimachinery/pkg/util/proxy.NewUpgradeAwareHandler).
type numericPort struct {
	apirest.Connecter
	what string
	get  func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// Connect implements rest.Connecter. As upstream, a missing object is the first error.
func (b *numericPort) Connect(ctx context.Context, id string, options runtime.Object, responder apirest.Responder) (http.Handler, error) {
	if _, name, port, ok := utilnet.SplitSchemeNamePort(id); ok && strings.Trim(port, "0123456789") != "" {
		if _, err := b.get(ctx, name, &metav1.GetOptions{}); err != nil {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q: write the port as a number", b.what, id))
	}
	return b.Connecter.Connect(ctx, id, options, responder)
}
