package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/authn"
)

// upstreamSet has flags that upstream's packages define, for their own types. plinth's tables have their texts,
// because upstream's have another style and in part are not true of plinth.
type upstreamSet struct{ set *pflag.FlagSet }

func newUpstreamSet(c *server.Config) *upstreamSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Audit.AddFlags(set)
	authn.AddFlags(set, c.Authentication)
	c.Authorization.AddFlags(set)
	set.AddFlagSet(tolerationFlags)
	return &upstreamSet{set}
}

// tolerationFlags are those of the plugin DefaultTolerationSeconds. They are variables of upstream's package, and registered
// once, so that their defaults are not what another command of this process has set.
var tolerationFlags = func() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	defaulttolerationseconds.RegisterFlags(f)
	return f
}()

func (u *upstreamSet) flag(name, help string) Flag {
	return Flag{Name: name, Set: upstreams(u.set), Help: help}
}

// choice is flag for one of words.
func (u *upstreamSet) choice(name, help string, words ...string) Flag {
	return Flag{Name: name, Set: upstreams(u.set), Help: help, Complete: values(words...)}
}

// hidden returns those that upstream has left for who still gives them, and that are not in a table.
func (u *upstreamSet) hidden(shown []Flag) (flags []Flag) {
	u.set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden && !slices.ContainsFunc(shown, func(s Flag) bool { return s.Name == f.Name }) {
			flags = append(flags, Flag{Name: f.Name, Set: upstreams(u.set), Help: f.Usage, Hidden: true})
		}
	})
	return flags
}

// authenticationFlags are about who sends a request.
func (u *upstreamSet) authenticationFlags() []Flag {
	return []Flag{
		u.flag("client-ca-file", "`file` with authorities whose certificates identify clients, besides plinth's own: the common name is the user, the organizations are the groups; read again when it changes"),
		u.flag("anonymous-auth", "accept requests without credentials, as user system:anonymous in group system:unauthenticated"),
		u.flag("enable-bootstrap-token-auth", "accept the tokens in Secrets of type bootstrap.kubernetes.io/token in namespace kube-system, for nodes that join"),
		u.flag("authentication-config", "`file` with an AuthenticationConfiguration: issuers of JSON web tokens, and which paths anonymous requests may have; its issuers are read again when it changes; not with --oidc flags"),

		u.flag("oidc-issuer-url", "https `URL` of an OpenID Connect issuer whose tokens identify clients"),
		u.flag("oidc-client-id", "`audience` that tokens of --oidc-issuer-url must be for"),
		u.flag("oidc-ca-file", "`file` with the authorities of the issuer's own certificate; by default those of the system"),
		u.flag("oidc-groups-claim", "`claim` that has the user's groups"),
		u.flag("oidc-groups-prefix", "`prefix` of the names of groups"),
		u.flag("oidc-required-claim", "claim that a token must have, `name=value`; repeat the flag for more"),
		u.flag("oidc-signing-algs", "`algorithms` that tokens may be signed with, out of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512"),
		u.flag("oidc-username-claim", "`claim` that has the name of the user"),
		u.flag("oidc-username-prefix", "`prefix` of the names of users, - for none; by default the URL of the issuer and #, but for the claim email"),

		u.flag("authentication-token-webhook-config-file", "kubeconfig `file` of a webhook that is asked whose a bearer token is, when nobody else knows it"),
		u.flag("authentication-token-webhook-cache-ttl", "how long answers of the webhook are used again"),
		u.flag("authentication-token-webhook-version", "API `version` of TokenReviews for the webhook: v1 or v1beta1"),

		u.flag("requestheader-client-ca-file", "`file` with authorities of front proxies, whose requests name their users in headers; read again when it changes; by default there are no front proxies"),
		u.flag("requestheader-allowed-names", "common `names` that certificates of front proxies may have; by default any"),
		u.flag("requestheader-extra-headers-prefix", "`prefixes` of headers in which front proxies say more of the user, such as X-Remote-Extra-"),
		u.flag("requestheader-group-headers", "`headers` in which front proxies name the user's groups, such as X-Remote-Group"),
		u.flag("requestheader-uid-headers", "`headers` in which front proxies give the user's UID, such as X-Remote-Uid"),
		u.flag("requestheader-username-headers", "`headers` in which front proxies name the user, such as X-Remote-User"),
	}
}

// authorizationFlags are about what users may do.
func (u *upstreamSet) authorizationFlags() []Flag {
	none := ""
	mode := u.choice("authorization-mode", "`modes` that decide what a user may do, in their order, out of "+strings.Join(modes.AuthorizationModeChoices, ", "), modes.AuthorizationModeChoices...)
	mode.DropIn.byDefault = &none
	return []Flag{
		mode,
		u.flag("authorization-policy-file", "`file` with the policy for mode ABAC, one JSON object a line"),
		u.flag("authorization-webhook-config-file", "kubeconfig `file` of the webhook for mode Webhook"),
		u.choice("authorization-webhook-version", "`version` of the SubjectAccessReview that the webhook gets: v1 or v1beta1", "v1", "v1beta1"),
		u.flag("authorization-webhook-cache-authorized-ttl", "how long the webhook's permissions are kept"),
		u.flag("authorization-webhook-cache-unauthorized-ttl", "how long the webhook's refusals are kept"),
		u.flag("authorization-config", "`file` with an AuthorizationConfiguration, which is read again when it changes; in place of --authorization-mode and --authorization-webhook-*"),
	}
}

func (u *upstreamSet) tolerationFlags() []Flag {
	return []Flag{
		u.flag("default-not-ready-toleration-seconds", "`seconds` that pods stay on a node that is not ready, unless their tolerations say otherwise"),
		u.flag("default-unreachable-toleration-seconds", "`seconds` that pods stay on a node that cannot be reached, unless their tolerations say otherwise"),
	}
}

func (u *upstreamSet) auditFlags() []Flag {
	logs := []Flag{
		u.flag("audit-policy-file", "`file` with the audit policy; without it nothing is logged"),
		u.flag("audit-log-path", "`file` to write audit events to, - for standard output"),
		u.flag("audit-log-maxage", "`days` to keep rotated audit log files for; 0: for ever"),
		u.flag("audit-log-maxbackup", "`number` of rotated audit log files to keep; 0: all of them"),
		u.flag("audit-log-maxsize", "`megabytes` at which an audit log file is rotated; 0: 100"),
		u.choice("audit-log-format", "`format` of the audit log: json, or legacy for one line of text for each event", "json", "legacy"),
		u.flag("audit-log-version", "API `version` of events for the audit log"),
		u.flag("audit-log-compress", "compress rotated audit log files with gzip"),
	}
	webhook := []Flag{
		u.flag("audit-webhook-config-file", "kubeconfig `file` of a webhook to send audit events to"),
		u.flag("audit-webhook-initial-backoff", "how long to wait before a failed request to the audit webhook is sent again"),
		u.flag("audit-webhook-version", "API `version` of events for the audit webhook"),
	}
	return slices.Concat(logs, u.backendFlags("audit-log", "the audit log"), webhook, u.backendFlags("audit-webhook", "the audit webhook"))
}

// backendFlags are those that both backends of the audit log have. Their names begin with that of the backend.
func (u *upstreamSet) backendFlags(backend, called string) (flags []Flag) {
	for _, f := range []Flag{
		u.choice("mode", "`mode` of WAY: batch to write events later, blocking to write them before a response ends, blocking-strict to refuse requests whose event cannot be written", "batch", "blocking", "blocking-strict"),
		u.flag("batch-buffer-size", "`number` of events that may wait for WAY, in mode batch; more are lost"),
		u.flag("batch-max-size", "largest `number` of events in a batch for WAY"),
		u.flag("batch-max-wait", "longest time before a batch for WAY that is not full is written"),
		u.flag("batch-throttle-enable", "limit the batches for WAY"),
		u.flag("batch-throttle-qps", "average `number` of batches a second for WAY"),
		u.flag("batch-throttle-burst", "`number` of batches at once for WAY, after a pause"),
		u.flag("truncate-enabled", "shorten events and batches for WAY that are too large"),
		u.flag("truncate-max-batch-size", "`bytes` of a batch for WAY above which it is split, if truncation is on"),
		u.flag("truncate-max-event-size", "`bytes` of an event for WAY above which request and response are left out of it, if truncation is on"),
	} {
		f.Name, f.Help = backend+"-"+f.Name, strings.ReplaceAll(f.Help, "WAY", called)
		flags = append(flags, f)
	}
	return flags
}
