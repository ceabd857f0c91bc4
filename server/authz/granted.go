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

// granted remembers the rules that users have, until a role or a binding changes. Upstream collects
// them for each decision, and says which binding has allowed it.
type granted struct {
	store *sqlstore.Store
	rules *validation.DefaultRuleResolver

	mu      sync.RWMutex
	at      int64 // what changedAt was before the rules were collected
	holders map[string][]grant
}

// grant is a rule that somebody has.
type grant struct {
	rule   *rbacv1.PolicyRule
	reason string // for a request that the rule allows
}

// mostHolders bounds how many users and namespaces are remembered; if there are more, all are
// forgotten and those that still ask are remembered anew.
const mostHolders = 2048

func newGranted(store *sqlstore.Store, rules *validation.DefaultRuleResolver) *granted {
	return &granted{store: store, rules: rules, holders: map[string][]grant{}}
}

// allows returns the reason why a request is allowed, "" if no rule allows it.
func (g *granted) allows(ctx context.Context, a authorizer.Attributes) string {
	for _, one := range g.of(ctx, a.GetUser(), a.GetNamespace()) {
		if rbac.RuleAllows(a, one.rule) {
			return one.reason
		}
	}
	return ""
}

// of returns the rules that a user has in a namespace, in upstream's order.
func (g *granted) of(ctx context.Context, who user.Info, namespace string) []grant {
	var room [256]byte
	holder := appendHolder(room[:0], who, namespace)
	at := g.changedAt()
	g.mu.RLock()
	found, ok := g.holders[string(holder)]
	ok = ok && g.at == at
	g.mu.RUnlock()
	if ok {
		return found
	}
	found = g.collect(ctx, who, namespace)
	g.remember(at, string(holder), found)
	return found
}

// collect asks upstream's resolver. It leaves out roles that do not exist and objects that cannot
// be read: what they would allow is decided when somebody asks for it.
func (g *granted) collect(ctx context.Context, who user.Info, namespace string) (found []grant) {
	reason := ""
	g.rules.VisitRulesFor(ctx, who, namespace, func(source fmt.Stringer, rule *rbacv1.PolicyRule, _ error) bool {
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

func (g *granted) remember(at int64, holder string, found []grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at < g.at {
		return
	}
	if at > g.at || len(g.holders) >= mostHolders {
		g.at, g.holders = at, map[string][]grant{}
	}
	g.holders[holder] = found
}

// changedAt is higher after every change of a role or a binding.
func (g *granted) changedAt() int64 {
	return max(
		g.store.ChangedAt(rolePrefix), g.store.ChangedAt(roleBindingPrefix),
		g.store.ChangedAt(clusterRolePrefix), g.store.ChangedAt(clusterRoleBindingPrefix),
	)
}

// appendHolder appends what names a user, its groups and a namespace, and nothing else: each part
// begins with its length, for a name may have any characters.
func appendHolder(b []byte, who user.Info, namespace string) []byte {
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
