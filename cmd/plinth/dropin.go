package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// newProgram returns what the program is: plinth, or what plinth is called as. plinth test-assets
// makes links with such names.
func newProgram() *cobra.Command {
	switch filepath.Base(os.Args[0]) {
	case apiServerName:
		return newAPIServer()
	case etcdName:
		return newEtcdDropIn()
	}
	return newRoot()
}

// apiServerName and etcdName are the names by which tests look for their servers.
const (
	apiServerName = "kube-apiserver"
	etcdName      = "etcd"
)
