package control

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
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/sqlstore"
)

// trustName is the ConfigMap from which extension servers read whom to believe.
const trustName = "extension-apiserver-authentication"

// Trust is what an extension server needs to know to believe this server.
type Trust struct {
	// ClientCA has signed the certificates of clients, ProxyCA the one that this server
	// shows; both in PEM.
	ClientCA, ProxyCA []byte
	// ProxyName is the common name in the latter.
	ProxyName string
}

// KeepTrust publishes what read returns, at once and again when it has changed or been
// deleted, until ctx ends; it looks every so often.
func KeepTrust(ctx context.Context, config Config, read func() (Trust, error), every time.Duration) {
	c, err := typedcore.NewForConfig(quiet(config.Client))
	if err != nil {
		config.Logf("publish authorities: %v", err)
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failed := false; ; {
		err := publish(ctx, config.Store, c.ConfigMaps(metav1.NamespaceSystem), read)
		if err != nil && !failed && ctx.Err() == nil {
			config.Logf("publish authorities: %v", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// publish adds to what is published already: other servers have authorities of their own
// (upstream: controlplane/controller/clusterauthenticationtrust).
func publish(ctx context.Context, store *sqlstore.Store, configMaps typedcore.ConfigMapInterface, read func() (Trust, error)) error {
	trust, err := read()
	if err != nil {
		return err
	}
	now := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trustName}}
	there := storedObject[corev1.ConfigMap](store, "/registry/core/configmaps/", metav1.NamespaceSystem+"/"+trustName)
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
	case overtaken(err) || errors.IsAlreadyExists(err):
		return nil // the next look will see
	case errors.IsInvalid(err) || errors.IsRequestEntityTooLargeError(err):
		// Too many authorities are in it. Those of servers that run come back.
		return configMaps.Delete(ctx, trustName, metav1.DeleteOptions{})
	}
	return err
}

// addTo returns data with t added. What is in data and cannot be read is an error, as
// upstream: somebody else's words are not thrown away.
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
	for key, add := range map[string]string{
		"requestheader-allowed-names":        t.ProxyName,
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-uid-headers":          "X-Remote-Uid",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
	} {
		joined, err := joinList(data[key], add)
		if err != nil {
			return nil, fmt.Errorf("%s of ConfigMap %s: %w", key, trustName, err)
		}
		data[key] = joined
	}
	return data, nil
}

// joinAuthorities adds certificates to those that are there and still valid.
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

func joinList(there, add string) (string, error) {
	var list []string
	if there != "" {
		if err := json.Unmarshal([]byte(there), &list); err != nil {
			return "", err
		}
	}
	if slices.Contains(list, add) {
		return there, nil
	}
	out, err := json.Marshal(append(list, add))
	return string(out), err
}
