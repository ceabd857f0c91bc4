package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// joinRight lets a group use a role.
type joinRight struct{ name, role, group string }

// joinRights are what nodes need to join and to renew their certificates; docs/cluster.md has them too.
var joinRights = []joinRight{
	{"node-bootstrap", "system:node-bootstrapper", bootstrapapi.BootstrapDefaultGroup},
	{"node-autoapprove", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", bootstrapapi.BootstrapDefaultGroup},
	{"node-autorenew", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", user.NodesGroup},
}

// addJoinRights makes the bindings that are not there under any name, and returns their names.
func addJoinRights(ctx context.Context, client kubernetes.Interface) (made []string, err error) {
	bindings := client.RbacV1().ClusterRoleBindings()
	all, err := bindings.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, right := range joinRights {
		if slices.ContainsFunc(all.Items, right.isIn) {
			continue
		}
		_, err := bindings.Create(ctx, right.binding(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return made, fmt.Errorf("the ClusterRoleBinding %s does not bind %s to the group %s, which nodes need to join: delete it, and run this again", right.name, right.role, right.group)
		}
		if err != nil {
			return made, err
		}
		made = append(made, right.name)
	}
	return made, nil
}

func (r joinRight) isIn(b rbacv1.ClusterRoleBinding) bool {
	return b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == r.role && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.GroupKind && s.Name == r.group
	})
}

func (r joinRight) binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: r.group}},
	}
}

// joinToken is a bootstrap token. text is its secret form, ID.SECRET.
type joinToken struct{ id, text string }

// addJoinToken makes a token for a node.
func addJoinToken(ctx context.Context, client kubernetes.Interface, node string, end time.Time) (*joinToken, error) {
	text, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	parts := bootstraputil.BootstrapTokenRegexp.FindStringSubmatch(text)
	token := &joinToken{id: parts[1], text: text}
	_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: token.secret()},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey:               token.id,
			bootstrapapi.BootstrapTokenSecretKey:           parts[2],
			bootstrapapi.BootstrapTokenExpirationKey:       end.UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenDescriptionKey:      fmt.Sprintf("for the node %s, by plinth join-command", node),
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		},
	}, metav1.CreateOptions{})
	return token, err
}

func (t *joinToken) secret() string { return bootstraputil.BootstrapTokenSecretName(t.id) }

func (t *joinToken) delete(ctx context.Context, client kubernetes.Interface) error {
	return client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, t.secret(), metav1.DeleteOptions{})
}

// errNoTokens says that a server does not know bootstrap tokens.
var errNoTokens = errors.New("does not accept bootstrap tokens: start it with --enable-bootstrap-token-auth")

// acceptedWithin is how long a server may take to know a new token: a kube-apiserver, or another replica, hears of it later.
const acceptedWithin = 3 * time.Second

// check asks the server who the token's user is, for so long. A request that has begun is not cut.
func (t *joinToken) check(ctx context.Context, config *clientrest.Config, within time.Duration) error {
	config = clientrest.AnonymousClientConfig(config)
	config.BearerToken = t.text
	config.QPS = -1 // the pauses below are the limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, within/20, within, true, func(context.Context) (bool, error) {
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if apierrors.IsUnauthorized(err) {
			return false, nil
		}
		return err == nil && review.Status.UserInfo.Username == bootstrapapi.BootstrapUserPrefix+t.id, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errNoTokens
	}
	return err
}
