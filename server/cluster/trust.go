package cluster

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// trustName is the ConfigMap from which extension servers read which authorities to trust.
const trustName = "extension-apiserver-authentication"

// Trust is what an extension server needs to know to trust this server.
type Trust struct {
	// ClientCA has signed the certificates of clients. ProxyCA has signed this server's client certificate
	// and those of front proxies. Both are in PEM.
	ClientCA, ProxyCA []byte
	// ProxyNames are the common names in these certificates.
	ProxyNames []string
	// The request headers that name the user, in addition to the usual ones.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeaderPrefixes []string
}

// publishTrust adds what Config.Trust returns to the published values, because other servers have authorities
// of their own (upstream: controlplane/controller/clusterauthenticationtrust).
func (c *Cluster) publishTrust(ctx context.Context) error {
	configMaps := c.core.ConfigMaps(metav1.NamespaceSystem)
	trust, err := c.config.Trust()
	if err != nil {
		return err
	}
	now := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trustName}}
	there := lister.Get[corev1.ConfigMap](c.config.Store, object.Prefix("", "configmaps"), metav1.NamespaceSystem+"/"+trustName)
	if there != nil {
		now = there.DeepCopy()
	}
	data, err := trust.addTo(now.Data)
	if err != nil || reflect.DeepEqual(data, now.Data) {
		return err
	}
	now.Data = data
	if there == nil {
		_, err = configMaps.Create(ctx, now, metav1.CreateOptions{})
	} else {
		_, err = configMaps.Update(ctx, now, metav1.UpdateOptions{})
	}
	switch {
	case reconcile.Overtaken(err) || apierrors.IsAlreadyExists(err):
		return nil // the next round reads it again
	case apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err):
		// The ConfigMap has become too large, so it is deleted. Running servers add their authorities again.
		return configMaps.Delete(ctx, trustName, metav1.DeleteOptions{})
	}
	return err
}

// addTo returns data with t added. As in upstream, data that cannot be parsed is an error, so that nothing of
// another author is overwritten.
func (t Trust) addTo(data map[string]string) (map[string]string, error) {
	data = maps.Clone(data)
	if data == nil {
		data = map[string]string{}
	}
	for key, ca := range map[string][]byte{"client-ca-file": t.ClientCA, "requestheader-client-ca-file": t.ProxyCA} {
		joined, err := joinAuthorities(data[key], ca)
		if err != nil {
			return nil, fmt.Errorf("%s of ConfigMap %s: %w", key, trustName, err)
		}
		data[key] = joined
	}
	for key, add := range map[string][]string{
		"requestheader-allowed-names":        t.ProxyNames,
		"requestheader-username-headers":     append([]string{"X-Remote-User"}, t.UsernameHeaders...),
		"requestheader-uid-headers":          append([]string{"X-Remote-Uid"}, t.UIDHeaders...),
		"requestheader-group-headers":        append([]string{"X-Remote-Group"}, t.GroupHeaders...),
		"requestheader-extra-headers-prefix": append([]string{"X-Remote-Extra-"}, t.ExtraHeaderPrefixes...),
	} {
		joined, err := joinList(data[key], add...)
		if err != nil {
			return nil, fmt.Errorf("%s of ConfigMap %s: %w", key, trustName, err)
		}
		data[key] = joined
	}
	return data, nil
}

// joinAuthorities adds certificates to the existing ones that are still valid.
func joinAuthorities(there string, add []byte) (string, error) {
	all, err := cert.ParseCertsPEM(append([]byte(there), add...))
	if err != nil {
		return "", err
	}
	var out []byte
	seen := map[string]bool{}
	for _, c := range all {
		if seen[string(c.Raw)] || time.Now().After(c.NotAfter) {
			continue
		}
		seen[string(c.Raw)] = true
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return string(out), nil
}

// joinList adds the missing names to a JSON list.
func joinList(there string, add ...string) (string, error) {
	var list []string
	if there != "" {
		if err := json.Unmarshal([]byte(there), &list); err != nil {
			return "", err
		}
	}
	before := len(list)
	for _, item := range add {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	if len(list) == before && there != "" {
		return there, nil
	}
	out, err := json.Marshal(list)
	return string(out), err
}
