package authz

import (
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// compiler makes the compiler of match conditions at its first use, and keeps it.
type compiler func() authorizationcel.Compiler

func newCompiler() compiler { return sync.OnceValue(authorizationcel.NewDefaultCompiler) }

// counted are the metrics of webhooks that kube-apiserver has.
type counted struct {
	webhookmetrics.NoopRequestMetrics
	webhookmetrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

// onError is the decision if a webhook cannot be asked.
var onError = map[string]authorizer.Decision{
	apiserver.FailurePolicyNoOpinion: authorizer.DecisionNoOpinion,
	apiserver.FailurePolicyDeny:      authorizer.DecisionDeny,
}

// webhook makes upstream's authorizer that asks another server.
func (a *Authorizer) webhook(c apiserver.AuthorizerConfiguration) (authority, error) {
	w := c.Webhook
	decision, ok := onError[w.FailurePolicy]
	if !ok {
		return nil, fmt.Errorf("unknown failurePolicy %q", w.FailurePolicy)
	}
	client, err := webhookutil.LoadKubeconfig(*w.ConnectionInfo.KubeConfigFile, nil)
	if err != nil {
		return nil, err
	}
	if w.Timeout.Duration != 0 {
		client.Timeout = w.Timeout.Duration
	}
	// Upstream keeps no answers with a time to live of 0.
	authorizedTTL, unauthorizedTTL := w.AuthorizedTTL.Duration, w.UnauthorizedTTL.Duration
	if !w.CacheAuthorizedRequests {
		authorizedTTL = 0
	}
	if !w.CacheUnauthorizedRequests {
		unauthorizedTTL = 0
	}
	return webhook.New(client, w.SubjectAccessReviewVersion, authorizedTTL, unauthorizedTTL,
		*a.options.WebhookRetryBackoff, decision, w.MatchConditions, c.Name,
		counted{WebhookMetrics: webhookmetrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()}, a.compiler())
}
