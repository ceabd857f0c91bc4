package builtin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/rest"
)

// byNumber is a proxy to pods or nodes that refuses ports which are not numbers: there are
// names of ports for Services only, and upstream's proxy panics on the address it makes of
// one (k8s.io/apimachinery/pkg/util/proxy.NewUpgradeAwareHandler).
type byNumber struct {
	rest.Connecter
	what string
	get  func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// Connect implements rest.Connecter. Of what is not there the answer is that, as upstream.
func (b *byNumber) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	if _, name, port, ok := utilnet.SplitSchemeNamePort(id); ok && strings.Trim(port, "0123456789") != "" {
		if _, err := b.get(ctx, name, &metav1.GetOptions{}); err != nil {
			return nil, err
		}
		return nil, errors.NewBadRequest(fmt.Sprintf("invalid %s request %q: write the port as a number", b.what, id))
	}
	return b.Connecter.Connect(ctx, id, options, responder)
}
