package authz

import (
	"bytes"
	"context"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Node is upstream's authorizer for kubelets: a node may read the secrets, config maps, claims and
// volumes of its pods, and ask for the tokens of their service accounts. It is not asked about
// others.
//
// Upstream's graph of what belongs to a node is fed from the store. The request of a node brings it
// up to date before the decision, so that a pod that was bound just now counts, and a server
// without nodes has no graph.
type Node struct {
	upstream *node.NodeAuthorizer
	who      nodeidentifier.NodeIdentifier
	parts    []*part
}

var (
	_ authorizer.Authorizer   = &Node{}
	_ authorizer.RuleResolver = &Node{}
)

func newNode(store *sqlstore.Store) *Node {
	node.RegisterMetrics()
	graph, who := node.NewGraph(), nodeidentifier.NewDefaultNodeIdentifier()
	n := &Node{upstream: node.NewAuthorizer(graph, who, nodeRules()), who: who}
	n.parts = []*part{
		newPart(store, object.Prefix("", "pods"), samePod, decoded(func(pod *corev1.Pod) {
			if pod.Spec.NodeName != "" {
				graph.AddPod(pod)
			}
		}), func(namespace, name string) { graph.DeletePod(name, namespace) }),
		newPart(store, object.Prefix("", "persistentvolumes"), sameNever, decoded(graph.AddPV), func(_, name string) { graph.DeletePV(name) }),
		newPart(store, object.Prefix(storagev1.GroupName, "volumeattachments"), sameNever, decoded(func(attachment *storagev1.VolumeAttachment) {
			graph.AddVolumeAttachment(attachment.Name, attachment.Spec.NodeName)
		}), func(_, name string) { graph.DeleteVolumeAttachment(name) }),
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		n.parts = append(n.parts, newPart(store, object.Prefix(resourcev1.GroupName, "resourceslices"), sameNever, decoded(func(slice *onNode) {
			graph.AddResourceSlice(slice.Metadata.Name, slice.Spec.NodeName)
		}), func(_, name string) { graph.DeleteResourceSlice(name) }))
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.PodCertificateRequest) {
		n.parts = append(n.parts, newPart(store, object.Prefix(certificatesv1.GroupName, "podcertificaterequests"), sameNever,
			decoded(graph.AddPodCertificateRequest), func(namespace, name string) {
				graph.DeletePodCertificateRequest(&certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
			}))
	}
	return n
}

// onNode is what all versions of a ResourceSlice have.
type onNode struct {
	Metadata struct{ Name string }     `json:"metadata"`
	Spec     struct{ NodeName string } `json:"spec"`
}

// Authorize implements authorizer.Authorizer.
func (n *Node) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, is := n.who.NodeIdentity(a.GetUser()); !is {
		return authorizer.DecisionNoOpinion, "", nil
	}
	for _, p := range n.parts {
		p.RLock()
		defer p.RUnlock()
	}
	return n.upstream.Authorize(ctx, a)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer: the decision of Authorize has no conditions.
func (n *Node) ConditionsAwareAuthorize(ctx context.Context, what authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(n.Authorize(ctx, what))
}

// EvaluateConditions implements authorizer.Authorizer. There are no conditions to evaluate.
func (n *Node) EvaluateConditions(ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return n.upstream.EvaluateConditions(ctx, decision, data)
}

// RulesFor implements authorizer.RuleResolver.
func (n *Node) RulesFor(ctx context.Context, who user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return n.upstream.RulesFor(ctx, who, namespace)
}

// decoded calls add with the object of an entry.
func decoded[T any](add func(*T)) func(*sqlstore.Entry) error {
	return func(e *sqlstore.Entry) error {
		object, err := lister.DecodeAnew[T](e)
		if err == nil {
			add(object)
		}
		return err
	}
}

// part is the part of the graph that comes from one resource.
type part struct {
	*lister.Derived
	prefix string
	same   func(was, is *sqlstore.Entry) bool // tells whether a change leaves the graph as it is
	add    func(*sqlstore.Entry) error        // fails, and adds nothing, if the object cannot be read
	remove func(namespace, name string)

	known map[string]bool // keys of objects that are in the graph; guarded by Derived
}

func newPart(store *sqlstore.Store, prefix string, same func(was, is *sqlstore.Entry) bool, add func(*sqlstore.Entry) error, remove func(namespace, name string)) *part {
	p := &part{prefix: prefix, same: same, add: add, remove: remove, known: map[string]bool{}}
	p.Derived = lister.NewDerived(store, prefix, p.reset, p.apply)
	return p
}

// reset takes all objects out of the graph.
func (p *part) reset() {
	for key := range p.known {
		p.forget(key)
	}
}

func (p *part) forget(key string) {
	delete(p.known, key)
	namespace, name, namespaced := strings.Cut(key[len(p.prefix):], "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	p.remove(namespace, name)
}

// apply takes a change of an object in. An object that can no longer be read gives no rights.
func (p *part) apply(ev *sqlstore.Event) {
	key := ev.Entry.Key
	switch {
	case ev.Type == sqlstore.Delete:
		p.forget(key)
	case p.known[key] && ev.Prev != nil && p.same(ev.Prev, ev.Entry):
	case p.add(ev.Entry) != nil:
		p.forget(key)
	default:
		p.known[key] = true
	}
}

func sameNever(_, _ *sqlstore.Entry) bool { return false }

var (
	specField   = []byte(`"spec":{`)
	statusField = []byte(`,"status":{`)
	// Fields of the status that name the claims made for the pod.
	claimStatuses = [][]byte{[]byte(`"resourceClaimStatuses"`), []byte(`"extendedResourceClaimStatus"`)}
)

// samePod tells whether a change of a pod concerns only its metadata or status, as most changes do. Then nothing is
// decoded. Objects are stored with metadata, spec and status in this order, and a quote inside a string is escaped, so
// that the fields are found without parsing.
func samePod(was, is *sqlstore.Entry) bool {
	return was.CreateRevision == is.CreateRevision && bytes.Equal(specOf(was.Value), specOf(is.Value)) &&
		!hasClaims(was.Value) && !hasClaims(is.Value)
}

func hasClaims(pod []byte) bool {
	return slices.ContainsFunc(claimStatuses, func(field []byte) bool { return bytes.Contains(pod, field) })
}

// specOf returns the JSON of a pod's spec, or of more than that.
func specOf(pod []byte) []byte {
	if i := bytes.Index(pod, specField); i >= 0 {
		pod = pod[i:]
	}
	if i := bytes.LastIndex(pod, statusField); i >= 0 {
		pod = pod[:i]
	}
	return pod
}
