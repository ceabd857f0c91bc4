package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/encryption"
)

// addEncryptionFlags adds the flags about encryption at rest, under kube-apiserver's names.
func addEncryptionFlags(cmd *cobra.Command, o *encryption.Options) {
	f := cmd.Flags()
	f.StringVar(&o.ConfigFile, "encryption-provider-config", "", "`file` with an EncryptionConfiguration: which objects are encrypted in the database, and how")
	f.BoolVar(&o.AutomaticReload, "encryption-provider-config-automatic-reload", false, "take up changes of --encryption-provider-config within a minute; a file that cannot be used changes nothing")
}

// warnOfPassword warns of a password on the command line, which every user of the machine can
// read.
func warnOfPassword(cmd *cobra.Command, dsn string, log *slog.Logger) {
	f := cmd.Flags().Lookup("dsn")
	if _, fromVariable := f.Annotations[fromEnv]; f.Changed && !fromVariable && dialects.HasPassword(dsn) {
		log.Warn("the password in --dsn is shown to every user of this machine by ps; write it in PLINTH_DB_PASSWORD, or in a file that PLINTH_DB_PASSWORD_FILE names")
	}
}
