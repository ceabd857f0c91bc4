package main

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/plinth-io/plinth/server/authz"
)

// authorizationUsage are usage texts in place of upstream's.
var authorizationUsage = map[string]string{
	"authorization-mode":                           "`modes` that decide what a user may do, in their order, out of " + strings.Join(modes.AuthorizationModeChoices, ", "),
	"authorization-policy-file":                    "`file` with the policy for mode ABAC, one JSON object a line",
	"authorization-webhook-config-file":            "kubeconfig `file` of the webhook for mode Webhook",
	"authorization-webhook-version":                "`version` of the SubjectAccessReview that the webhook gets: v1 or v1beta1",
	"authorization-webhook-cache-authorized-ttl":   "how long the webhook's permissions are kept",
	"authorization-webhook-cache-unauthorized-ttl": "how long the webhook's refusals are kept",
	"authorization-config":                         "`file` with an AuthorizationConfiguration, which is read again when it changes; in place of --authorization-mode and --authorization-webhook-*",
}

// addAuthorizationFlags adds the flags that say what users may do, which are upstream's.
func addAuthorizationFlags(cmd *cobra.Command, o *authz.Options) {
	o.AddFlags(cmd.Flags())
	for name, usage := range authorizationUsage {
		cmd.Flags().Lookup(name).Usage = usage
	}
}
