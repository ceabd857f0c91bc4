package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server/pki"
)

const certsCopyHelp = `Copy the authority, ca.crt and ca.key, from a directory to the pki directory of --data-dir.

A replica that starts with it accepts the clients of all replicas with that authority, and makes the
other certificates itself. If the authority is there already, nothing changes. If another one is
there, the command fails. The directory is only read: it may be a Secret that a pod mounts.`

func newCertsCopy() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:     "copy DIRECTORY",
		Short:   "Copy the authority of another plinth",
		Long:    certsCopyHelp,
		Example: `  plinth certs copy /etc/plinth/authority --data-dir /var/lib/plinth`,
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("write the directory that has ca.crt and ca.key")
			}
			return copyAuthority(args[0], dataDirOf(cmd, dataDir), cmd.OutOrStdout())
		},
	}
	addFlags(cmd, dataDirFlag(&dataDir, ownDirHelp))
	return cmd
}

func copyAuthority(from, dataDir string, stdout io.Writer) error {
	to := filepath.Join(dataDir, "pki")
	copied, err := pki.CopyAuthority(from, to)
	switch {
	case errors.Is(err, pki.ErrNoAuthority):
		return usagef("%v: write the directory that has ca.crt and ca.key", err)
	case errors.Is(err, pki.ErrOtherAuthority):
		return fmt.Errorf("%w: a plinth cannot change its authority this way; docs/replicas.md says what to do", err)
	case err != nil:
		return aboutPKI(err)
	case copied:
		_, err = fmt.Fprintf(stdout, "copied the authority to %s\n", to)
	default:
		_, err = fmt.Fprintf(stdout, "the authority is in %s already\n", to)
	}
	return err
}
