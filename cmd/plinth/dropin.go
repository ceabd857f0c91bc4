package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// newProgram returns what the program is: plinth, or what plinth is called as. plinth test-assets
// makes links with names of servers, and who wants kubectl plinth makes one for kubectl.
func newProgram() *cobra.Command {
	switch programName() {
	case pluginName, pluginCompleteName:
		return newPlugin()
	case apiServerName:
		return newAPIServer()
	case etcdName:
		return newEtcdDropIn()
	}
	return newRoot()
}

// programName is what the program was called as.
func programName() string { return filepath.Base(os.Args[0]) }

// apiServerName and etcdName are the names by which tests look for their servers.
const (
	apiServerName = "kube-apiserver"
	etcdName      = "etcd"
)
