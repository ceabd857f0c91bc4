package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/etcd"
)

// addOthers adds etcd's flags that are ignored, or refused if they are given.
func (o *etcdOptions) addOthers(f *pflag.FlagSet) {
	for _, other := range append(ignoredFlags(etcdIgnored, &o.ignored), ignoredFlags(etcdRefused, &o.refused)...) {
		flag := f.VarPF(other, other.name, "", "")
		flag.Hidden = true
		if other.bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// etcdRefused are flags of etcd that would protect the server if plinth had them, or say what it
// serves.
const etcdRefused = `client-cert-allowed-hostname client-crl-file config-file cors host-whitelist`

// etcdRefusals say what to do without each of them.
var etcdRefusals = map[string]string{
	"client-cert-allowed-hostname": "leave it out, and let an authority of its own, in --trusted-ca-file, sign the certificates of clients",
	"client-crl-file":              "leave it out; certificates cannot be revoked, so let an authority of its own sign short-lived ones, and replace it in --trusted-ca-file if one is lost",
	"config-file":                  "leave it out, and write what is in the file as flags, which have the same names, or as variables such as PLINTH_LISTEN_CLIENT_URLS",
	"cors":                         "leave it out; there is no JSON gateway that pages in browsers could ask",
	"host-whitelist":               "leave it out; there is no JSON gateway that browsers could reach under other names. Listen on a loopback address or a socket, or use --trusted-ca-file",
}

// check finds mistakes without any I/O.
func (o *etcdOptions) check() error {
	if len(o.refused) > 0 {
		return usagef("plinth has no %s; %s", o.refused[0], etcdRefusals[strings.TrimPrefix(o.refused[0], "--")])
	}
	if err := o.table.check(); err != nil {
		return err
	}
	if o.transport.KeepaliveInterval == 0 {
		o.transport.KeepaliveInterval = -1
	}
	if err := o.compaction.parse(); err != nil {
		return err
	}
	dsn, err := kine.DSN(o.dsn)
	if err == nil && dsn != "" {
		err = dialects.Check(dsn, dialects.Options{})
	}
	if err != nil {
		return usagef("--dsn: %v", err)
	}
	o.dsn = dsn
	return o.checkURLs()
}

// checkURLs reads all URLs, and refuses to show keys in the clear to other machines. The pages have none.
func (o *etcdOptions) checkURLs() error {
	secure := false
	for _, urls := range []*[]string{&o.listen, &o.listenHTTP, &o.listenMetrics} {
		flag, keys := o.table.name(urls), urls == &o.listen
		for _, text := range *urls {
			a, err := etcd.ParseAddress(strings.TrimSpace(text))
			if err != nil {
				return usagef("%s %v", flag, err)
			}
			if keys && !a.Secure() && !a.Local() && !o.plaintext {
				return usagef("%s %s: other machines would reach it without TLS; write https:// and give --cert-file and --key-file, or --auto-tls, or give --insecure-plaintext", flag, a)
			}
			if a.Secure() && !o.tls.given() {
				return usagef("%s %s: TLS needs --cert-file and --key-file, or --auto-tls", flag, a)
			}
			secure = secure || a.Secure()
			if keys && !a.Secure() && (o.tls.trustedCA != "" || o.tls.clientAuth) {
				o.logger.Warn("clients need no certificate at a URL that is not https:// or unixs://, whatever --trusted-ca-file and --client-cert-auth say", "url", a)
			}
		}
	}
	for _, text := range o.advertise {
		if _, err := etcd.ParseAddress(strings.TrimSpace(text)); err != nil {
			return usagef("--advertise-client-urls %v", err)
		}
	}
	if len(o.listen) == 0 {
		return usagef("--listen-client-urls is empty; write a URL such as http://127.0.0.1:2379")
	}
	if o.tls.given() && !secure {
		o.logger.Warn("no URL to listen on is https:// or unixs://, so the certificate is not used")
	}
	return o.aboutTLS(o.tls.check())
}

// aboutTLS makes what is wrong with certificates or ciphers a mistake on the command line, in etcd's word for a
// version of TLS.
func (o *etcdOptions) aboutTLS(err error) error {
	if err == nil {
		return nil
	}
	text := o.table.nameFlags(&o.tls.serving, err).Error()
	return usagef("%s", strings.ReplaceAll(text, "VersionTLS13", "TLS1.3"))
}
