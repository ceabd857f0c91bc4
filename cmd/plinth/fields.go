package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// flagOfField is the flag that sets a field of server.Config. Errors of package server call
// the field Config.NAME, because its callers may have no flags.
var flagOfField = map[string]string{
	"DSN":                   "dsn",
	"DatabaseTimeout":       "database-timeout",
	"NewDatabase":           "new-database",
	"NewAuthority":          "new-authority",
	"Listen":                "listen",
	"AdvertiseAddress":      "advertise-address",
	"DataDir":               "data-dir",
	"SANs":                  "tls-san",
	"History":               "history",
	"Memory":                "memory",
	"Keep":                  "keep",
	"EventTTL":              "event-ttl",
	"LeaseCommitDelay":      "lease-commit-delay",
	"BackupInterval":        "backup-interval",
	"BackupDir":             "backup-dir",
	"BackupKeep":            "backup-keep",
	"ScrubInterval":         "scrub-interval",
	"Controllers":           "controllers",
	"RuntimeConfig":         "runtime-config",
	"ServeRemovedAPIs":      "serve-removed-apis",
	"AdmissionConfigFile":   "admission-control-config-file",
	"KubeletCertificate":    "kubelet-client-certificate",
	"KubeletKey":            "kubelet-client-key",
	"KubeletCA":             "kubelet-certificate-authority",
	"KubeletAddressTypes":   "kubelet-preferred-address-types",
	"ServiceClusterIPRange": "service-cluster-ip-range",
	"ServiceNodePortRange":  "service-node-port-range",
	"Encryption":            "encryption-provider-config",
	"ShutdownDelay":         "shutdown-delay-duration",
	"ShutdownTimeout":       "shutdown-timeout",
	"RequestTimeout":        "request-timeout",
	"MaxReads":              "max-requests-inflight",
	"MaxWrites":             "max-mutating-requests-inflight",
	"MaxConnections":        "max-connections",
	"MaxStreams":            "http2-max-streams-per-connection",
	"GoAwayChance":          "goaway-chance",
	"ServeSnapshots":        "serve-snapshots",
	"NoFairness":            "enable-priority-and-fairness",

	"EnableAdmissionPlugins":  "enable-admission-plugins",
	"DisableAdmissionPlugins": "disable-admission-plugins",
}

var (
	fieldInText = regexp.MustCompile(`\bConfig\.[A-Z]\w*`)
	flagInText  = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)
)

// nameFlags replaces fields of server.Config in the text of err by what the user wrote: the flag,
// or the variable that has set it.
func nameFlags(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	text := fieldInText.ReplaceAllStringFunc(err.Error(), func(field string) string {
		if flag := flagOfField[strings.TrimPrefix(field, "Config.")]; flag != "" {
			return "--" + flag
		}
		return field
	})
	text = flagInText.ReplaceAllStringFunc(text, func(word string) string {
		if f := cmd.Flags().Lookup(strings.TrimPrefix(word, "--")); f != nil {
			return source(f)
		}
		return word
	})
	return &reworded{text, err}
}

// reworded is an error with another text.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }
