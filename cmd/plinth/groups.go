package main

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
)

// flagGroup is a group of flags in a help text.
type flagGroup struct {
	name  string
	flags []string
}

// groupsOf returns the groups of a command's flags, nil if it has none.
func groupsOf(cmd *cobra.Command) []flagGroup {
	switch cmd.CommandPath() {
	case "plinth serve", "serve":
		return flagGroups
	case "plinth etcd", "etcd":
		return etcdFlagGroups
	}
	return nil
}

// flagGroups is the order in which serve's help and docs/flags.md show its flags. A new flag
// of serve needs a line here, where * stands for any text.
var flagGroups = []flagGroup{
	{"Database and files", []string{
		"dsn",
		"database-timeout",
		"new-database",
		"new-authority",
		"data-dir",
		"history",
		"memory",
		"keep",
		"keep-file",
		"event-ttl",
		"lease-commit-delay",
	}},
	{"Backups", []string{
		"backup-interval",
		"backup-dir",
		"backup-keep",
		"scrub-interval",
	}},
	{"Encryption at rest", []string{
		"encryption-provider-config*",
	}},
	{"Network and TLS", []string{
		"listen",
		"advertise-address",
		"tls-san",
		"tls-*",
	}},
	{"Controllers and Services", []string{
		"controllers",
		"service-cluster-ip-range",
		"service-node-port-range",
	}},
	{"API versions", []string{
		"runtime-config",
		"serve-removed-apis",
		"feature-gates",
		"emulated-version",
		"min-compatibility-version",
		"runtime-config-emulation-forward-compatible",
		"emulation-forward-compatible",
	}},
	{"Authentication", []string{
		"client-ca-file",
		"anonymous-auth",
		"enable-bootstrap-token-auth",
		"authentication-config",
		"oidc-issuer-url",
		"oidc-client-id",
		"oidc-*",
		"authentication-token-webhook-config-file",
		"authentication-token-webhook-*",
		"requestheader-client-ca-file",
		"requestheader-*",
	}},
	{"Tokens", []string{
		"service-account-*",
		"api-audiences",
		"token-auth-file",
	}},
	{"Authorization", []string{
		"authorization-*",
	}},
	{"Admission", []string{
		"enable-admission-plugins",
		"disable-admission-plugins",
		"admission-control-config-file",
		"allow-privileged",
		"default-*-toleration-seconds",
	}},
	{"Kubelets", []string{
		"kubelet-*",
	}},
	{"Limits and shutdown", []string{
		"request-timeout",
		"max-requests-inflight",
		"max-mutating-requests-inflight",
		"enable-priority-and-fairness",
		"max-connections",
		"http2-max-streams-per-connection",
		"goaway-chance",
		"shutdown-delay-duration",
		"shutdown-timeout",
	}},
	{"Audit", []string{
		"audit-*",
	}},
	{"Logs", []string{
		"v",
		"log-format",
	}},
	{"Debugging", []string{
		"profiling",
		"contention-profiling",
		"serve-snapshots",
	}},
}

// sections returns the flags of cmd by group, and the names of the flags that have no group.
func sections(cmd *cobra.Command) (groups cliflag.NamedFlagSets, ungrouped []string) {
	grouped := map[string]bool{"help": true}
	for _, group := range groupsOf(cmd) {
		set := groups.FlagSet(group.name)
		set.SortFlags = false
		for _, pattern := range group.flags {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if match, _ := path.Match(pattern, f.Name); match && !grouped[f.Name] {
					set.AddFlag(f)
					grouped[f.Name] = true
				}
			})
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !grouped[f.Name] {
			ungrouped = append(ungrouped, f.Name)
		}
	})
	return groups, ungrouped
}

// groupFlags makes the help of own show its flags in groups. Commands below it, which inherit the
// function, have few.
func groupFlags(own *cobra.Command) {
	own.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != own {
			own.Root().HelpFunc()(cmd, args)
			return
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", cmd.Long, cmd.UseLine(), cmd.Example)
		groups, _ := sections(cmd)
		for _, name := range groups.Order { // cliflag.PrintSections would sort the flags
			fmt.Fprintf(out, "\n%s:\n%s", name, flagUsages(groups.FlagSets[name], columns(out)))
		}
	})
}

// columns returns the width of the help.
func columns(out io.Writer) int {
	const least, most = 80, 160
	if isTerminal(out) {
		if width, _, err := term.GetSize(int(fileOf(out).Fd())); err == nil {
			return max(least, min(width, most))
		}
	}
	return helpColumns
}

// helpColumns is the width of the help that does not go to a terminal.
const helpColumns = 100

// foldFlags makes the help of a program's commands fold what it says of flags.
func foldFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("folded", func(cmd *cobra.Command, flags *pflag.FlagSet) string {
		return flagUsages(flags, columns(cmd.OutOrStdout()))
	})
	template := strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages", "folded . .LocalFlags")
	root.SetUsageTemplate(strings.ReplaceAll(template, ".InheritedFlags.FlagUsages", "folded . .InheritedFlags"))
}

// flagUsage is a line of pflag's: the flag, and what it is for.
var flagUsage = regexp.MustCompile(`^( +(?:-., )?--\S+(?: \S+)?) {3,}(.*)$`)

// flagUsages says what flags are for. Unlike pflag's own text it fits the width when names are long.
func flagUsages(flags *pflag.FlagSet, width int) string {
	var heads, texts []string
	for line := range strings.Lines(flags.FlagUsages()) {
		if found := flagUsage.FindStringSubmatch(strings.TrimSuffix(line, "\n")); found != nil {
			heads, texts = append(heads, found[1]), append(texts, found[2])
		} else {
			heads, texts = append(heads, strings.TrimSpace(line)), append(texts, "")
		}
	}
	return usageTable(heads, texts, width)
}

// usageTable writes heads and, beside or below them, texts.
func usageTable(heads, texts []string, width int) string {
	const widest = 36
	indent := 0
	for _, head := range heads {
		indent = min(max(indent, len(head)+3), widest)
	}
	var b strings.Builder
	for i, head := range heads {
		b.WriteString(head)
		at := len(head)
		if at > indent-2 {
			b.WriteByte('\n')
			at = 0
		}
		b.WriteString(strings.Repeat(" ", indent-at))
		foldText(&b, texts[i], indent, width)
		b.WriteByte('\n')
	}
	return b.String()
}

// foldText writes words into lines from column indent on.
func foldText(b *strings.Builder, text string, indent, width int) {
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
}

// upstreamUsage are usage texts for upstream's flags. They replace upstream's own texts, which
// have another style and in part are not true of plinth.
var upstreamUsage = map[string]string{
	"default-not-ready-toleration-seconds":   "`seconds` that pods stay on a node that is not ready, unless their tolerations say otherwise",
	"default-unreachable-toleration-seconds": "`seconds` that pods stay on a node that cannot be reached, unless their tolerations say otherwise",

	"audit-policy-file":   "`file` with the audit policy; without it nothing is logged",
	"audit-log-path":      "`file` to write audit events to, - for standard output",
	"audit-log-maxage":    "`days` to keep rotated audit log files for; 0: for ever",
	"audit-log-maxbackup": "`number` of rotated audit log files to keep; 0: all of them",
	"audit-log-maxsize":   "`megabytes` at which an audit log file is rotated; 0: 100",
	"audit-log-format":    "`format` of the audit log: json, or legacy for one line of text for each event",
	"audit-log-compress":  "compress rotated audit log files with gzip",

	"audit-webhook-config-file":     "kubeconfig `file` of a webhook to send audit events to",
	"audit-webhook-initial-backoff": "how long to wait before a failed request to the audit webhook is sent again",
}

// Both backends of the audit log have these flags.
func init() {
	for way, name := range map[string]string{"audit-log-": "the audit log", "audit-webhook-": "the audit webhook"} {
		for flag, usage := range map[string]string{
			"version":                 "API `version` of events for WAY",
			"mode":                    "`mode` of WAY: batch to write events later, blocking to write them before a response ends, blocking-strict to refuse requests whose event cannot be written",
			"batch-buffer-size":       "`number` of events that may wait for WAY, in mode batch; more are lost",
			"batch-max-size":          "largest `number` of events in a batch for WAY",
			"batch-max-wait":          "longest time before a batch for WAY that is not full is written",
			"batch-throttle-enable":   "limit the batches for WAY",
			"batch-throttle-qps":      "average `number` of batches a second for WAY",
			"batch-throttle-burst":    "`number` of batches at once for WAY, after a pause",
			"truncate-enabled":        "shorten events and batches for WAY that are too large",
			"truncate-max-batch-size": "`bytes` of a batch for WAY above which it is split, if truncation is on",
			"truncate-max-event-size": "`bytes` of an event for WAY above which request and response are left out of it, if truncation is on",
		} {
			upstreamUsage[way+flag] = strings.ReplaceAll(usage, "WAY", name)
		}
	}
}
