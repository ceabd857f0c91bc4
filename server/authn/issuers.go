package authn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	configmetrics "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// issuers authenticates the JSON web tokens of other issuers than the server itself: those of the
// --oidc flags, or of the file of --authentication-config, which may change.
type issuers struct {
	life       context.Context // of the server
	file       string          // empty: flags
	algorithms []string
	anonymous  *apiserver.AnonymousAuthConfig // of the file; it may not change
	ours       []string                       // issuers of service accounts, which nobody else may be
	audiences  authenticator.Audiences
	identity   string // of the server, in metrics
	logger     *slog.Logger

	read    string      // the content of file that is in use or can never be
	wrong   bool        // it can never be
	refused atomic.Bool // the file has changed and cannot be used
	current atomic.Pointer[generation]
}

// generation is what one configuration has made.
type generation struct {
	tokens  authenticator.Token
	healthy func() error // nil once the keys of all issuers are known
	stop    func()
	urls    []string // of its issuers
}

// AuthenticateToken implements authenticator.Token.
func (i *issuers) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return i.current.Load().tokens.AuthenticateToken(ctx, token)
}

// begin makes the generation of a configuration. It reads the keys of issuers later, so that an
// issuer may be a pod of this cluster.
func (i *issuers) begin(c *apiserver.AuthenticationConfiguration) (_ *generation, err error) {
	ctx, stop := context.WithCancel(i.life)
	defer func() {
		if err != nil {
			stop()
		}
	}()
	var tokens []authenticator.Token
	var checks []func() error
	var urls []string
	compiler := authenticationcel.NewDefaultCompiler()
	for _, jwt := range c.JWT {
		o := oidc.Options{JWTAuthenticator: jwt, Compiler: compiler, SupportedSigningAlgs: i.algorithms, DisallowedIssuers: i.ours, APIServerID: i.identity}
		if ca := jwt.Issuer.CertificateAuthority; ca != "" {
			if o.CAContentProvider, err = dynamiccertificates.NewStaticCAContent("oidc-authenticator", []byte(ca)); err != nil {
				return nil, err
			}
		}
		made, err := oidc.New(ctx, o)
		if err != nil {
			return nil, err
		}
		tokens, checks, urls = append(tokens, made), append(checks, made.HealthCheck), append(urls, jwt.Issuer.URL)
	}
	return &generation{
		tokens:  authenticator.WrapAudienceAgnosticToken(i.audiences, tokenunion.NewFailOnError(tokens...)),
		healthy: func() error { return allOf(checks) },
		stop:    stop,
		urls:    urls,
	}, nil
}

func allOf(checks []func() error) error {
	var failed []error
	for _, check := range checks {
		if err := check(); err != nil {
			failed = append(failed, err)
		}
	}
	return utilerrors.NewAggregate(failed)
}

const (
	// readyTimeout is how long a new configuration may take until all its issuers are known. Until
	// then the old one is in use.
	readyTimeout = time.Minute
	readyPoll    = 100 * time.Millisecond
	// oldLife is how long requests may still use a configuration that was replaced.
	oldLife = time.Minute
	// lastFetch is how long after its end a configuration may still count that it has read keys.
	lastFetch = 30 * time.Second
)

// reload takes up the file if it has changed. An error is to be tried again: a file that can never
// be good is logged, and not read twice.
func (i *issuers) reload() (err error) {
	defer func() { i.refused.Store(i.wrong || err != nil) }()
	text, err := os.ReadFile(i.file)
	if err != nil {
		configmetrics.RecordAuthenticationConfigAutomaticReloadFailure(i.identity)
		return err
	}
	if string(text) == i.read {
		return nil
	}
	c, err := i.parse(text)
	if err != nil {
		configmetrics.RecordAuthenticationConfigAutomaticReloadFailure(i.identity)
		i.read, i.wrong = string(text), true
		i.logger.Error("the authentication configuration has changed and is wrong; the one before stays in use", "file", i.file, "err", err)
		return nil
	}
	if err := i.replace(c); err != nil {
		configmetrics.RecordAuthenticationConfigAutomaticReloadFailure(i.identity)
		return err
	}
	i.read, i.wrong = string(text), false
	configmetrics.RecordAuthenticationConfigAutomaticReloadSuccess(i.identity, i.read)
	i.logger.Info("the authentication configuration has changed", "file", i.file, "issuers", len(c.JWT))
	return nil
}

// parse returns a configuration that may follow the one in use.
func (i *issuers) parse(text []byte) (*apiserver.AuthenticationConfiguration, error) {
	c, err := decodeConfiguration(text)
	if err != nil {
		return nil, err
	}
	wrong := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c, i.ours)
	if !reflect.DeepEqual(i.anonymous, c.Anonymous) {
		wrong = append(wrong, field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file"))
	}
	return c, wrong.ToAggregate()
}

// replace begins a new generation, and ends the old one when the new one is ready.
func (i *issuers) replace(c *apiserver.AuthenticationConfiguration) error {
	next, err := i.begin(c)
	if err != nil {
		return err
	}
	if err := i.await(next); err != nil {
		next.stop()
		return err
	}
	old := i.current.Swap(next)
	time.AfterFunc(oldLife, func() {
		old.stop()
		time.AfterFunc(lastFetch, func() { i.forgetKeys(old, next) })
	})
	return nil
}

// forgetKeys ends the metrics about the keys of issuers that a configuration has and the next one has not.
func (i *issuers) forgetKeys(old, next *generation) {
	for _, url := range old.urls {
		if !slices.Contains(next.urls, url) {
			oidc.DeleteJWKSFetchMetrics(url, i.identity)
		}
	}
}

func (i *issuers) await(g *generation) error {
	end, tick := time.After(readyTimeout), time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := g.healthy()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return err
		case <-i.life.Done():
			return i.life.Err()
		}
	}
}

var configurations = serializer.NewCodecFactory(newConfigurationScheme(), serializer.EnableStrict).UniversalDecoder

func newConfigurationScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}

func decodeConfiguration(text []byte) (*apiserver.AuthenticationConfiguration, error) {
	if len(text) == 0 {
		return nil, errors.New("empty config data")
	}
	object, err := runtime.Decode(configurations(), text)
	if err != nil {
		return nil, err
	}
	c, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", object)
	}
	return c, nil
}
