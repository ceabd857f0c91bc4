package main

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/server/logging"
)

// clientFlags are the flags of commands that ask a server as kubectl does, named as kubectl's are.
type clientFlags struct{ kubeconfig, context, dataDir string }

func (q *clientFlags) flags() []Flag {
	context := contextFlag(&q.context)
	context.Complete = q.completeContexts
	return []Flag{kubeconfigFlag(&q.kubeconfig), context, dataDirFlag(&q.dataDir, dataDirUsage)}
}

func (q *clientFlags) rules(cmd *cobra.Command) *clientcmd.ClientConfigLoadingRules {
	return kubeconfigRules(cmp.Or(q.kubeconfig, namedDataDir(cmd)), dataDirOf(cmd, q.dataDir))
}

// loader reads that kubeconfig. namespace replaces that of the context, if it is not empty.
func (q *clientFlags) loader(cmd *cobra.Command, namespace string) clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: q.context}
	overrides.Context.Namespace = namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(q.rules(cmd), overrides)
}

// config returns what the loader's kubeconfig says of server and user.
func (q *clientFlags) config(cmd *cobra.Command, loader clientcmd.ClientConfig) (*clientrest.Config, error) {
	logging.Libraries(logging.New(io.Discard, logging.Options{}), 0) // they log what errors say too
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, noKubeconfig(cmp.Or(q.kubeconfig, namedDataDir(cmd)), "write --kubeconfig FILE, or start plinth serve in this directory first")
	}
	if err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	return config, nil
}

// completeContexts completes names of contexts in the kubeconfig.
func (q *clientFlags) completeContexts(cmd *cobra.Command, _ []string, begun string) (names []string, _ cobra.ShellCompDirective) {
	config, err := q.loader(cmd, "").RawConfig()
	if err == nil {
		names = slices.Sorted(maps.Keys(config.Contexts))
	}
	return beginning(names, begun), cobra.ShellCompDirectiveNoFileComp
}
