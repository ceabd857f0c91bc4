package main

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/controllers"
)

// complete lets a shell complete the value of a flag out of values. Without any, it completes
// nothing; flags that are not mentioned get names of files.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndexByte(begun, ',')+1] // the values of a list that are complete
		out := make([]string, len(values))
		for i, value := range values {
			out[i] = before + value
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // not a flag
	}
}

func completeServe(cmd *cobra.Command) {
	names := []string{"*", "none"}
	for _, name := range controllers.Names() {
		names = append(names, name, "-"+name)
	}
	complete(cmd, "controllers", names...)
	complete(cmd, "enable-admission-plugins", optionalPlugins()...)
	complete(cmd, "disable-admission-plugins", admission.DefaultNames()...)
	complete(cmd, "kubelet-preferred-address-types", server.NodeAddressTypes...)
	complete(cmd, "dsn", "sqlite://", "postgres://", "mysql://")
	complete(cmd, "audit-log-format", "json", "legacy")
	complete(cmd, "audit-log-mode", "batch", "blocking", "blocking-strict")
	complete(cmd, "audit-webhook-mode", "batch", "blocking", "blocking-strict")
	complete(cmd, "authorization-mode", modes.AuthorizationModeChoices...)
	complete(cmd, "authorization-webhook-version", "v1", "v1beta1")
	for _, flag := range []string{
		"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
		"listen", "advertise-address", "tls-san", "database-timeout", "history", "memory", "event-ttl", "lease-commit-delay", "backup-interval", "backup-keep", "scrub-interval", "runtime-config", "serve-removed-apis", "feature-gates",
		"service-cluster-ip-range", "service-node-port-range", "service-account-issuer", "api-audiences",
	} {
		complete(cmd, flag)
	}
	for _, flag := range []string{"data-dir", "backup-dir"} {
		if err := cmd.MarkFlagDirname(flag); err != nil {
			panic(err) // not a flag
		}
	}
}

// refineCompletion makes cobra's own command completion say what is wrong with a shell that
// it does not know.
func refineCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has none
	}
	cmd.Short = "Print a script that completes commands and flags in a shell"
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Short = "Print the script for " + shell.Name()
	}
}
