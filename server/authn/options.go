package authn

import (
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// Options are kube-apiserver's options about who sends a request, but for those of service
// accounts and static tokens, which package tokens has.
type Options = kubeoptions.BuiltInAuthenticationOptions

// NewOptions returns the defaults of kube-apiserver.
func NewOptions() *Options {
	return kubeoptions.NewBuiltInAuthenticationOptions().
		WithAnonymous().WithBootstrapToken().WithClientCert().WithOIDC().WithRequestHeader().WithWebHook()
}

// AddFlags adds kube-apiserver's flags for o, which must be of NewOptions.
func AddFlags(f *pflag.FlagSet, o *Options) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "api-audiences" { // of package tokens
			f.AddFlag(flag)
		}
	})
}

// Check finds what is wrong with options. It compares the files of authorities if both are named. nil stands for NewOptions.
func Check(o *Options) error {
	return utilerrors.NewAggregate(o.Validate())
}

// ProxyOptions are those about front proxies.
type ProxyOptions = genericoptions.RequestHeaderAuthenticationOptions
