package authn

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	configmetrics "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	corelisters "k8s.io/client-go/listers/core/v1"
	kubeauthenticator "k8s.io/kubernetes/pkg/kubeapiserver/authenticator"
	"k8s.io/kubernetes/plugin/pkg/auth/authenticator/token/bootstrap"

	"github.com/plinth-io/plinth/server/files"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Config says how an Authenticator of a server works.
type Config struct {
	Options *Options

	Roots func() *x509.CertPool // the server's own authority
	// Owns tells which certificates are those of servers on this database, whoever has signed them; nil: none.
	Owns      func(*x509.Certificate) Ownership
	Audiences authenticator.Audiences
	Issuers   []string // of service accounts
	// Tokens returns what authenticates tokens of service accounts, and then those of others.
	Tokens func(others ...authenticator.Token) authenticator.Token

	Store    *sqlstore.Store
	Identity string // of the server, in metrics
	Logger   *slog.Logger
}

// Open returns an Authenticator. It reads the files that are configured; nothing is made that is
// not. life is the server's: after its end, the Authenticator must not be used.
func Open(life context.Context, c Config) (*Authenticator, error) {
	given, err := configuration(c.Options)
	if err != nil {
		return nil, err
	}
	a := NewAuthenticator(c.Roots, nil)
	a.owns, a.logger, a.audiences, a.anonymous = c.Owns, c.Logger, c.Audiences, newAnonymity(given.Anonymous)
	if a.clients, err = openBundle("client CA file (--client-ca-file)", clientCA(c.Options)); err != nil {
		return nil, err
	}
	if a.proxies, err = openProxies(c.Options.RequestHeader); err != nil {
		return nil, err
	}
	others, err := a.others(life, c, given)
	if err != nil {
		return nil, err
	}
	a.tokens = newCarried(c.Tokens(others...))
	a.Renew()
	return a, nil
}

func clientCA(o *Options) string {
	if o.ClientCert == nil {
		return ""
	}
	return o.ClientCert.ClientCA
}

// configuration returns who may be anonymous, and the issuers of tokens if there are any. What is
// there for others is left out: upstream would start goroutines for its files, and compile nothing
// with great effort.
func configuration(o *Options) (kubeauthenticator.Config, error) {
	if o.AuthenticationConfigFile == "" && (o.OIDC == nil || o.OIDC.IssuerURL == "") {
		return kubeauthenticator.Config{Anonymous: apiserver.AnonymousAuthConfig{Enabled: o.Anonymous == nil || o.Anonymous.Allow}}, nil
	}
	part := *o
	part.ClientCert, part.RequestHeader, part.ServiceAccounts = nil, nil, nil
	c, err := part.ToAuthenticationConfig()
	switch {
	case err != nil && o.AuthenticationConfigFile != "":
		return c, fmt.Errorf("--authentication-config: %w", err)
	case err != nil:
		return c, fmt.Errorf("--oidc-issuer-url and the flags beside it: %w", err)
	}
	return c, nil
}

// others returns what authenticates tokens of others than service accounts, in upstream's order.
func (a *Authenticator) others(life context.Context, c Config, given kubeauthenticator.Config) (list []authenticator.Token, err error) {
	if o := c.Options.BootstrapToken; o != nil && o.Enable {
		list = append(list, authenticator.WrapAudienceAgnosticToken(c.Audiences, bootstrapTokens(c.Store)))
	}
	if given.AuthenticationConfig != nil {
		if a.issuers, err = openIssuers(life, c, given); err != nil {
			return nil, err
		}
		list = append(list, a.issuers)
	}
	if o := c.Options.WebHook; o != nil && o.ConfigFile != "" {
		remote, err := webhookTokens(life, c)
		if err != nil {
			return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
		}
		list = append(list, remote)
	}
	return list, nil
}

// bootstrapTokens reads the Secrets from the store, without a copy.
func bootstrapTokens(store *sqlstore.Store) authenticator.Token {
	secrets := corelisters.NewSecretLister(lister.New[corev1.Secret](store, object.Prefix("", "secrets")))
	return bootstrap.NewTokenAuthenticator(secrets.Secrets(metav1.NamespaceSystem))
}

// webhookTokens asks a server of somebody else. It remembers the answers.
func webhookTokens(life context.Context, c Config) (authenticator.Token, error) {
	o := c.Options.WebHook
	client, err := webhookutil.LoadKubeconfig(o.ConfigFile, nil)
	if err != nil {
		return nil, err
	}
	remote, err := webhook.New(client, o.Version, c.Audiences, *o.RetryBackoff)
	if err != nil {
		return nil, err
	}
	return tokencache.New(during{remote, life}, false, o.CacheTTL, o.CacheTTL), nil
}

// during ends what asks others when the server ends. The cache before it asks for all requests
// that wait, so it does not end with one of them.
type during struct {
	authenticator.Token
	life context.Context
}

// AuthenticateToken implements authenticator.Token.
func (d during) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	return d.Token.AuthenticateToken(ctx, token)
}

func openIssuers(life context.Context, c Config, given kubeauthenticator.Config) (*issuers, error) {
	i := &issuers{
		life: life, file: c.Options.AuthenticationConfigFile, algorithms: given.OIDCSigningAlgs,
		anonymous: given.AuthenticationConfig.Anonymous.DeepCopy(), ours: c.Issuers, audiences: c.Audiences,
		identity: c.Identity, logger: c.Logger, read: given.AuthenticationConfigData,
	}
	first, err := i.begin(given.AuthenticationConfig)
	if err != nil {
		return nil, err
	}
	i.current.Store(first)
	if i.file != "" {
		configmetrics.RegisterMetrics()
		configmetrics.RecordAuthenticationConfigLastConfigInfo(i.identity, i.read)
	}
	return i, nil
}

// Run takes up files that change, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	follow := func(what, file string, load func() error) {
		following.Go(func() { files.Follow(ctx, a.logger, what, []string{file}, load) })
	}
	if a.clients != nil {
		follow("authorities of clients", a.clients.file, func() error { return a.renewFrom(a.clients) })
	}
	if a.proxies != nil {
		follow("authorities of front proxies", a.proxies.file, func() error { return a.renewFrom(a.proxies.bundle) })
	}
	if a.issuers != nil && a.issuers.file != "" {
		follow("authentication configuration", a.issuers.file, a.issuers.reload)
	}
}

// renewFrom takes up a bundle that may have changed.
func (a *Authenticator) renewFrom(b *bundle) error {
	changed, err := b.load()
	if changed {
		a.Renew()
		a.logger.Info("took up authorities", "file", b.file)
	}
	b.refused.Store(err != nil)
	return err
}

// Refused returns which files have changed and cannot be used.
func (a *Authenticator) Refused() (all []string) {
	if a.clients != nil && a.clients.refused.Load() {
		all = append(all, "authorities of clients")
	}
	if a.proxies != nil && a.proxies.bundle.refused.Load() {
		all = append(all, "authorities of front proxies")
	}
	if a.issuers != nil && a.issuers.refused.Load() {
		all = append(all, "authentication configuration")
	}
	return all
}
