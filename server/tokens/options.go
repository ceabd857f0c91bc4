package tokens

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/server/fielderr"
)

// DefaultIssuer is the default of kubeadm.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

// Options say how tokens are signed and which tokens are accepted. The zero value signs with
// a key that the server makes itself. For each option kube-apiserver has a flag.
type Options struct {
	// SigningKeyFile has the private key, RSA or ECDSA in PEM, that tokens are signed with.
	// Empty: pki/sa.key in the data directory, made if it is missing.
	SigningKeyFile string

	// KeyFiles have the keys, public or private, that tokens are verified by, besides the
	// key that signs. With several, a key can be replaced while its tokens live. Empty: the
	// keys that servers of the same database have published.
	KeyFiles []string

	// Issuers are the accepted issuers of tokens; new tokens name the first. An issuer that is
	// an https URL publishes its keys: see Documents. Empty: DefaultIssuer.
	Issuers []string

	// Audiences are the names of the API as an audience: a token must be for one of them.
	// Empty: the Issuers.
	Audiences []string

	// MaxExpiration bounds how long a requested token lives. 0: no bound.
	MaxExpiration time.Duration

	// ExtendExpiration lets the tokens that kubelets ask for by default, an hour and seven
	// seconds, live for a year, because old clients do not read them again. nil: true, as
	// upstream.
	ExtendExpiration *bool

	// JWKSURI is where the issuer's configuration says that its keys are; an https URL. Empty:
	// this server.
	JWKSURI string

	// TokenFile is a CSV file of static tokens, TOKEN,USER,UID,"GROUP1,GROUP2", read once.
	TokenFile string

	// CacheFor is how long a valid token is accepted without another look at the objects that
	// it depends on; 10 seconds, as upstream. Negative: not at all.
	CacheFor time.Duration
}

// Bounds of MaxExpiration (upstream: controlplane/apiserver/options).
const (
	leastExpiration = time.Hour
	mostExpiration  = (1 << 32) * time.Second
)

// Check finds what can be known to be wrong without any I/O, in one line that says what
// to write instead. It names fields; see fielderr.
func (o *Options) Check() error {
	for i, issuer := range o.Issuers {
		if _, err := url.Parse(issuer); issuer == "" || err != nil && strings.Contains(issuer, ":") {
			return fielderr.Errorf("%v %q: write a URL such as %s", fielderr.Name("Issuers"), issuer, DefaultIssuer)
		}
		if slices.Contains(o.Issuers[:i], issuer) {
			return fielderr.Errorf("%v %q is named twice; leave one out", fielderr.Name("Issuers"), issuer)
		}
	}
	if slices.Contains(o.Audiences, "") {
		return fielderr.Errorf("%v: one of them is empty: write what tokens are to be for, such as %s", fielderr.Name("Audiences"), DefaultIssuer)
	}
	if o.MaxExpiration != 0 && (o.MaxExpiration < leastExpiration || o.MaxExpiration > mostExpiration) {
		return fielderr.Errorf("%v %v: write a duration of at least 1h and less than 2^32 seconds", fielderr.Name("MaxExpiration"), o.MaxExpiration)
	}
	if o.JWKSURI != "" {
		if u, err := url.Parse(o.JWKSURI); err != nil || u.Scheme != "https" {
			return fielderr.Errorf("%v %q: write an https URL", fielderr.Name("JWKSURI"), o.JWKSURI)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if len(o.Issuers) == 0 {
		o.Issuers = []string{DefaultIssuer}
	}
	if len(o.Audiences) == 0 {
		o.Audiences = o.Issuers
	}
	if o.ExtendExpiration == nil {
		extend := true
		o.ExtendExpiration = &extend
	}
	if o.CacheFor == 0 {
		o.CacheFor = 10 * time.Second
	}
	return o
}
