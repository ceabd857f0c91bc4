package main

import (
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/servingcert"
	"github.com/plinth-io/plinth/server/tokens"
)

func encryptionFlags(o *encryption.Options) []Flag {
	return []Flag{
		encryptionConfigFlag(&o.ConfigFile, "with an EncryptionConfiguration: which objects are encrypted in the database, and how"),
		{Name: "encryption-provider-config-automatic-reload", Set: boolean(&o.AutomaticReload, false),
			Help: "take up changes of --encryption-provider-config within a minute; a file that cannot be used changes nothing"},
	}
}

// servingFlags are about the certificates that clients are shown.
func servingFlags(o *servingcert.Options) []Flag {
	return []Flag{
		{Name: "tls-cert-file", Set: text(&o.CertFile, ""),
			Help: "`file` with the certificate to serve with, intermediate ones after it; read again when it changes; by default one signed by plinth's own authority"},
		{Name: "tls-private-key-file", Set: text(&o.KeyFile, ""),
			Help: "`file` with the private key of --tls-cert-file"},
		{Name: "tls-sni-cert-key", Set: value(cliflag.NewNamedCertKeyArray(&o.SNI)).showing(""), For: &o.SNI, Complete: fileNames,
			Help: "files of another certificate and its key, `cert,key[:names]`, for clients that ask for one of the names, or of those in the certificate; read again when they change; repeat the flag for more"},
		tlsMinVersionFlag(&o.MinVersion, "", strings.Join(cliflag.TLSPossibleVersions(), ", ")+"; by default VersionTLS12"),
		{Name: "tls-cipher-suites", Set: list(&o.CipherSuites, nil),
			Help: "`names` of the cipher suites up to TLS 1.2, by Go's names, separated by commas; by default Go's choice"},
		{Name: "tls-curve-preferences", Set: numbers32(&o.CurvePreferences, nil),
			Help: "`numbers` of the key exchange mechanisms, those of Go's tls.CurveID, in any order, separated by commas; by default Go's choice"},
	}
}

// tokenFlags are about tokens, of service accounts and static ones.
func tokenFlags(o *tokens.Options) []Flag {
	o.ExtendExpiration = new(bool)
	return []Flag{
		{Name: "service-account-signing-key-file", Set: text(&o.SigningKeyFile, ""),
			Help: "`file` with the private key that signs service account tokens; by default pki/sa.key in the data directory"},
		{Name: "service-account-key-file", Set: repeated(&o.KeyFiles, nil),
			Help: "`file` with keys that verify service account tokens, besides the signing key; repeat the flag for more; by default the keys of all plinths on the database"},
		{Name: "service-account-issuer", Set: repeated(&o.Issuers, []string{tokens.DefaultIssuer}),
			Help: "`URL` of the issuer of service account tokens; repeat the flag for other issuers to accept"},
		{Name: "service-account-max-token-expiration", Set: period(&o.MaxExpiration, 0),
			Help: "longest life of a service account token, at least 1h; 0: no limit"},
		{Name: "service-account-extend-token-expiration", Set: boolean(o.ExtendExpiration, true), For: &o.ExtendExpiration,
			Help: "extend the tokens of pods to a year, for clients that do not read them again"},
		{Name: "service-account-jwks-uri", Set: text(&o.JWKSURI, ""),
			Help: "https `URL` at which the issuer publishes its keys; by default this server"},
		{Name: "api-audiences", Set: list(&o.Audiences, nil),
			Help: "`audiences` a token must be issued for, separated by commas; by default the issuers"},
		{Name: "token-auth-file", Set: text(&o.TokenFile, ""),
			Help: "CSV `file` of static bearer tokens: token,user,uid,\"group1,group2\""},
	}
}
