package authz

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/plinth-io/plinth/sqlstore"
)

// ruleCache has the rules of users in namespaces, until a role or a binding changes. Upstream collects the rules
// anew for each decision.
type ruleCache struct {
	store    *sqlstore.Store
	resolver *validation.DefaultRuleResolver

	mu    sync.RWMutex
	at    int64              // what changedAt was before the rules were collected
	rules map[string][]grant // by user and namespace, see cacheKey
}

// grant is a rule that a user has.
type grant struct {
	rule   *rbacv1.PolicyRule
	reason string // for a request that the rule allows
}

// mostCached bounds the number of entries. A full cache is emptied, and fills again with the users that still send
// requests.
const mostCached = 2048

func newRuleCache(store *sqlstore.Store, rules *validation.DefaultRuleResolver) *ruleCache {
	return &ruleCache{store: store, resolver: rules, rules: map[string][]grant{}}
}

// allows returns the reason why a request is allowed, "" if no rule allows it.
func (c *ruleCache) allows(ctx context.Context, a authorizer.Attributes) string {
	for _, one := range c.of(ctx, a.GetUser(), a.GetNamespace()) {
		if rbac.RuleAllows(a, one.rule) {
			return one.reason
		}
	}
	return ""
}

// of returns the rules that a user has in a namespace, in upstream's order.
func (c *ruleCache) of(ctx context.Context, who user.Info, namespace string) []grant {
	var room [256]byte
	key := cacheKey(room[:0], who, namespace)
	at := c.changedAt()
	c.mu.RLock()
	found, ok := c.rules[string(key)]
	ok = ok && c.at == at
	c.mu.RUnlock()
	if ok {
		return found
	}
	found = c.collect(ctx, who, namespace)
	c.add(at, string(key), found)
	return found
}

// collect asks upstream's resolver. It leaves out roles that do not exist and objects that cannot
// be read; a request that the rest does not allow is decided by upstream's authorizer, which reports them.
func (c *ruleCache) collect(ctx context.Context, who user.Info, namespace string) (found []grant) {
	reason := ""
	c.resolver.VisitRulesFor(ctx, who, namespace, func(source fmt.Stringer, rule *rbacv1.PolicyRule, _ error) bool {
		if rule == nil {
			return true
		}
		if now := "RBAC: allowed by " + source.String(); now != reason { // the rules of a role share it
			reason = now
		}
		found = append(found, grant{rule, reason})
		return true
	})
	return found
}

func (c *ruleCache) add(at int64, key string, found []grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at < c.at {
		return
	}
	if at > c.at || len(c.rules) >= mostCached {
		c.at, c.rules = at, map[string][]grant{}
	}
	c.rules[key] = found
}

// changedAt is higher after every change of a role or a binding.
func (c *ruleCache) changedAt() int64 {
	return max(
		c.store.ChangedAt(rolePrefix), c.store.ChangedAt(roleBindingPrefix),
		c.store.ChangedAt(clusterRolePrefix), c.store.ChangedAt(clusterRoleBindingPrefix),
	)
}

// cacheKey appends the key of a user, with its groups, in a namespace. Each part begins with its length, because a
// name may have any characters.
func cacheKey(b []byte, who user.Info, namespace string) []byte {
	part := func(text string) {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	part(namespace)
	part(who.GetName())
	for _, group := range who.GetGroups() {
		part(group)
	}
	return b
}
