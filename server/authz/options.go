package authz

import (
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// Options are kube-apiserver's --authorization flags, in upstream's type.
type Options = kubeoptions.BuiltInAuthorizationOptions

// DefaultModes are the authorizers of a server that is not told which to use.
var DefaultModes = []string{modes.ModeNode, modes.ModeRBAC}

// NewOptions returns the defaults: see DefaultModes.
func NewOptions() *Options {
	o := kubeoptions.NewBuiltInAuthorizationOptions()
	o.Modes = slices.Clone(DefaultModes)
	return o
}

// CheckOptions finds what is wrong with options. It reads the configuration that they name. nil
// stands for the defaults.
func CheckOptions(o *Options) error {
	if o != nil {
		for _, mode := range o.Modes {
			if !modes.IsValidAuthorizationMode(mode) {
				return fmt.Errorf("authorization-mode %q is not a valid mode; write some of %s", mode, strings.Join(modes.AuthorizationModeChoices, ", "))
			}
		}
	}
	return utilerrors.NewAggregate(completed(o).Validate())
}

// completed returns a copy of o with the default modes, unless it names others or a file.
func completed(o *Options) *Options {
	if o == nil {
		o = NewOptions()
	}
	complete := *o
	if len(o.Modes) == 0 && o.AuthorizationConfigurationFile == "" {
		complete.Modes = DefaultModes
	}
	if complete.WebhookRetryBackoff == nil {
		complete.WebhookRetryBackoff = NewOptions().WebhookRetryBackoff
	}
	return &complete
}

// configuration returns the chain of authorizers that o asks for, and the text of the file that says so, if one does.
func configuration(o *Options) (*apiserver.AuthorizationConfiguration, string, error) {
	config, err := o.ToAuthorizationConfig(nil)
	if err != nil {
		return nil, "", err
	}
	if len(config.AuthorizationConfiguration.Authorizers) == 0 {
		return nil, "", fmt.Errorf("at least one authorization mode must be passed")
	}
	return config.AuthorizationConfiguration, config.InitialAuthorizationConfigurationData, nil
}
