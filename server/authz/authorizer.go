package authz

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/metrics"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/kubernetes/pkg/auth/authorizer/abac"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/plinth-io/plinth/sqlstore"
)

// Authorizer asks the authorizers of a configuration, in its order. Its methods are safe for
// concurrent use.
type Authorizer struct {
	options  *Options
	logger   *slog.Logger
	rules    *Resolver
	compiler compiler
	text     string                                // of the configuration file at the start
	named    *apiserver.AuthorizationConfiguration // in force
	required sets.Set[apiserver.AuthorizerType]    // must stay in the configuration when it changes

	// The authorizers that stay when the configuration changes, by their types.
	kept map[apiserver.AuthorizerType]authority

	current atomic.Pointer[chain]
	refused atomic.Bool // the configuration file has changed and cannot be used
}

var (
	_ authorizer.Authorizer   = &Authorizer{}
	_ authorizer.RuleResolver = &Authorizer{}
)

// authority is one authorizer of a chain.
type authority interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// chain is what one configuration asks for.
type chain struct {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// New returns the authorizer that o describes, for what is in store; nil stands for the defaults.
func New(store *sqlstore.Store, o *Options, logger *slog.Logger) (*Authorizer, error) {
	o = completed(o)
	config, text, err := configuration(o)
	if err != nil {
		return nil, err
	}
	in := newBound(store)
	a := &Authorizer{
		options: o, logger: logger, text: text, named: config, rules: newResolver(store, in), compiler: newCompiler(),
		required: sets.New[apiserver.AuthorizerType](), kept: map[apiserver.AuthorizerType]authority{},
	}
	for _, c := range config.Authorizers {
		if c.Type == apiserver.TypeWebhook {
			continue
		}
		a.required.Insert(c.Type)
		if a.kept[c.Type], err = lasting(c.Type, store, in, o); err != nil {
			return nil, err
		}
	}
	made, err := a.chainOf(config)
	if err != nil {
		return nil, err
	}
	a.current.Store(made)
	return a, nil
}

// lasting makes an authorizer that stays when the configuration changes; nil if authorizers of this type do not stay.
func lasting(which apiserver.AuthorizerType, store *sqlstore.Store, in *bound, o *Options) (authority, error) {
	switch string(which) {
	case modes.ModeNode:
		return newNode(store), nil
	case modes.ModeRBAC:
		return newRBAC(store, in), nil
	case modes.ModeABAC:
		return abac.NewFromFile(o.PolicyFile)
	}
	return nil, nil
}

// chainOf makes the chain of a configuration. Members of system:masters are allowed everything before any authorizer is
// asked.
func (a *Authorizer) chainOf(config *apiserver.AuthorizationConfiguration) (*chain, error) {
	askers := []union.NamedAuthorizer{{
		AuthorizerName: "kubernetes.io/system-privileged-group",
		Authorizer:     authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup),
	}}
	var resolvers []authorizer.RuleResolver
	for _, c := range config.Authorizers {
		one, err := a.authority(c)
		if err != nil {
			return nil, err
		}
		askers = append(askers, union.NamedAuthorizer{AuthorizerName: c.Name, Authorizer: metrics.InstrumentedAuthorizer(string(c.Type), c.Name, one)})
		resolvers = append(resolvers, one)
	}
	all, err := union.New(askers...)
	if err != nil {
		return nil, err
	}
	return &chain{all, union.NewRuleResolvers(resolvers...)}, nil
}

func (a *Authorizer) authority(c apiserver.AuthorizerConfiguration) (authority, error) {
	switch string(c.Type) {
	case modes.ModeWebhook:
		return a.webhook(c)
	case modes.ModeAlwaysAllow:
		return authorizerfactory.NewAlwaysAllowAuthorizer(), nil
	case modes.ModeAlwaysDeny:
		return authorizerfactory.NewAlwaysDenyAuthorizer(), nil
	}
	if kept := a.kept[c.Type]; kept != nil {
		return kept, nil
	}
	return nil, fmt.Errorf("authorizer type %s is not allowed if it was not enabled at initial server startup", c.Type)
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, what authorizer.Attributes) (authorizer.Decision, string, error) {
	return a.current.Load().Authorize(ctx, what)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, what authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return a.current.Load().ConditionsAwareAuthorize(ctx, what)
}

// EvaluateConditions implements authorizer.Authorizer.
func (a *Authorizer) EvaluateConditions(ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return a.current.Load().EvaluateConditions(ctx, decision, data)
}

// errNoUser is the error for rules of nobody.
var errNoUser = errors.New("no user")

// RulesFor implements authorizer.RuleResolver.
func (a *Authorizer) RulesFor(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	if who == nil {
		return nil, nil, false, errNoUser
	}
	return a.current.Load().RulesFor(ctx, who, namespace)
}

// Refused returns the configuration file if it has changed and cannot be used.
func (a *Authorizer) Refused() (all []string) {
	if a.refused.Load() {
		all = append(all, "authorization configuration")
	}
	return all
}

// Resolver finds the rules of users and of roles, whichever authorizers are asked.
func (a *Authorizer) Resolver() *Resolver { return a.rules }

// UpstreamMetrics are the metrics of upstream's authorizers: terminal decisions by each of them, webhooks,
// their match conditions, the reload of the configuration, and the graph of nodes.
var UpstreamMetrics = []string{
	"apiserver_authorization_decisions_total",
	"apiserver_authorization_webhook_evaluations_total", "apiserver_authorization_webhook_duration_seconds",
	"apiserver_authorization_webhook_evaluations_fail_open_total",
	"apiserver_authorization_match_condition_evaluation_errors_total", "apiserver_authorization_match_condition_evaluation_seconds",
	"apiserver_authorization_match_condition_exclusions_total",
	"apiserver_authorization_config_controller_automatic_reloads_total",
	"apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_authorization_config_controller_last_config_info",
	"node_authorizer_graph_actions_duration_seconds",
}
