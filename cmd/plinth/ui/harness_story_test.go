package ui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/tokens"
)

// story is what has happened in a small shop: several people have rolled out, set and deleted things.
type story struct {
	*testing.T
	config *clientrest.Config // of the admin
	tokens bool               // the people have tokens; else the admin impersonates them
}

// newStory plays the story on a server, by an admin who impersonates the people.
func newStory(t *testing.T, config *clientrest.Config) *story {
	t.Helper()
	s := &story{T: t, config: config}
	s.play()
	return s
}

// startShop starts a server on a database, in memory without a DSN, whose users have tokens, and plays the story.
func startShop(t *testing.T, dsn string) *story {
	t.Helper()
	users := ""
	for _, name := range []string{"ann", "bob", "carol", "erin"} {
		users += name + "-token," + name + "," + name + ",system:masters\n"
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{DSN: dsn, Tokens: tokens.Options{TokenFile: file}})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	shop := &story{T: t, config: s.RESTConfig(), tokens: true}
	shop.play()
	return shop
}

var resources = map[string]schema.GroupVersionResource{
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "ReplicaSet": {Group: "apps", Version: "v1", Resource: "replicasets"},
	"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Secret": {Version: "v1", Resource: "secrets"}, "Pod": {Version: "v1", Resource: "pods"},
	"Namespace": {Version: "v1", Resource: "namespaces"}, "Service": {Version: "v1", Resource: "services"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"RoleBinding":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// as returns a client of a user, who may do everything.
func (s *story) as(user, kind, namespace string) dynamic.ResourceInterface {
	s.Helper()
	config := clientrest.CopyConfig(s.config)
	config.Impersonate = clientrest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	if s.tokens {
		config = clientrest.AnonymousClientConfig(s.config)
		config.BearerToken = user + "-token"
	}
	config.QPS, config.UserAgent = -1, "kubectl"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	if namespace == "" {
		return client.Resource(resources[kind])
	}
	return client.Resource(resources[kind]).Namespace(namespace)
}

// create makes an object as a user. The object may be there.
func (s *story) create(user, text string) *unstructured.Unstructured {
	s.Helper()
	o := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		s.Fatalf("%v: %s", err, text)
	}
	made, err := s.as(user, o.GetKind(), o.GetNamespace()).Create(s.Context(), o, metav1.CreateOptions{FieldManager: "kubectl-create"})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	return made
}

// patch changes an object of the shop as a user.
func (s *story) patch(user, kind, name, manager string, fields map[string]any, subresource ...string) {
	s.Helper()
	text, err := json.Marshal(fields)
	if err == nil {
		_, err = s.as(user, kind, "shop").Patch(s.Context(), name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager}, subresource...)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *story) remove(user, kind, name string) {
	s.Helper()
	if err := s.as(user, kind, "shop").Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

func deployment(name, image string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: shop, labels: {app: %[1]s}}, spec: {replicas: %[3]d,
  selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: %[1]s, image: "%[2]s",
  env: [{name: LOG_LEVEL, value: info}], ports: [{containerPort: 8080}], resources: {requests: {cpu: 100m, memory: 64Mi}}}]}}}}`, name, image, replicas)
}

func image(name, image string) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": name, "image": image, "ports": []any{map[string]any{"containerPort": 8080}},
	}}}}}}
}

// play plays the story.
func (s *story) play() {
	s.Helper()
	s.create("erin", `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
	for _, d := range []struct {
		name, image string
		replicas    int
	}{{"web", "shop/web:1.4.0", 3}, {"cart", "shop/cart:2.0.1", 2}, {"search", "shop/search:0.9.3", 1}, {"mailer", "shop/mailer:1.1.0", 1}} {
		s.create("erin", deployment(d.name, d.image, d.replicas))
		s.create("erin", fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %[1]s, namespace: shop}, spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}}`, d.name))
	}
	s.create("erin", `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: blue, size: large, currency: EUR}}`)
	s.create("erin", `{apiVersion: v1, kind: ConfigMap, metadata: {name: banner, namespace: shop}, data: {text: "Welcome"}}`)
	s.create("erin", `{apiVersion: v1, kind: Secret, metadata: {name: payment, namespace: shop}, stringData: {key: the-first-key, user: shop}}`)
	s.create("erin", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: coupons.shop.example.com}, spec: {group: shop.example.com, scope: Namespaced,
  names: {plural: coupons, singular: coupon, kind: Coupon}, versions: [{name: v1, served: true, storage: true, additionalPrinterColumns: [{name: Percent, type: integer, jsonPath: .spec.percent}],
  schema: {openAPIV3Schema: {type: object, description: A coupon takes something off a price., properties: {spec: {type: object, required: [percent], properties: {
  percent: {type: integer, minimum: 1, maximum: 90, description: How much it takes off.}, products: {type: array, items: {type: string}, description: For which products; without any for all.},
  kind: {type: string, enum: [once, always], default: once}}, x-kubernetes-validations: [{rule: "self.percent < 50 || self.kind == 'once'", message: large coupons are good once}]}}}}}]}}`)
	for i, tag := range []string{"1.4.1", "1.5.0", "1.5.1"} {
		s.patch([]string{"ann", "bob", "ann"}[i], "Deployment", "web", "kubectl-set", image("web", "shop/web:"+tag))
	}
	s.patch("carol", "Deployment", "web", "kubectl-scale", map[string]any{"spec": map[string]any{"replicas": 5}})
	s.patch("ann", "Deployment", "cart", "kubectl-set", image("cart", "shop/cart:2.1.0"))
	s.patch("ann", "ConfigMap", "settings", "kubectl-edit", map[string]any{"data": map[string]any{"color": "green", "size": nil}})
	s.patch("bob", "ConfigMap", "settings", "kubectl-edit", map[string]any{"data": map[string]any{"currency": "SEK"}})
	s.patch("bob", "Secret", "payment", "kubectl-edit", map[string]any{"stringData": map[string]any{"key": "the-second-key"}})
	s.remove("bob", "ConfigMap", "banner")
	s.remove("carol", "Deployment", "mailer")
	s.patch("bob", "Deployment", "web", "kubectl-edit", image("web", "shop/web:latest"))
}
